import { TranslationBundle } from '@jupyterlab/translation';

import { IClusterClient } from '../clusters/client';
import type { IPreferences } from '../settings';
import { ISubmitClient } from './client';
import { IKept } from './drafts';
import { SubmitHistory } from './history';
import { IStart, ISubmitMemory } from './memory';
import { ISubmitSource } from './source';

/**
 * What the form that sends a run works with.
 */
export interface ISubmitOptions {
  source: ISubmitSource;
  client: ISubmitClient;
  clusters: IClusterClient;
  history: SubmitHistory;
  memory: ISubmitMemory;
  trans: TranslationBundle;
  /** What the form says at first; default: the last settings. */
  start?: IStart;
  /** What the form said when it was closed unsent. */
  kept?: IKept;
  /** What a form without earlier settings begins with; empty where the cluster's own counts. */
  preferences?: Pick<IPreferences, 'defaultCluster' | 'defaultQueue'>;
  /** Finds a file as a source, where the user says in the form what is to be run. */
  findSource?: (path: string) => Promise<ISubmitSource>;
  /** Whether all of the notebook is chosen at first, though cells are selected. */
  isWhole?: boolean;
  /** Milliseconds of rest before a preview. */
  delay?: number;
  /** Milliseconds before each further try to send. */
  pauses?: readonly number[];
}
