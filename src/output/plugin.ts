import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { IHyperPod } from '../tokens';
import { makeCard } from './card';
import { MIME_TYPE } from './data';
import { RunOutput } from './renderer';

/** Before plain text, which every output of ours has too. */
const RANK = 40;

/**
 * Shows the live log in a cell's output, wherever the host shows outputs.
 */
export const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:output',
  description: 'Shows the live log of a run in the output of its cell.',
  autoStart: true,
  requires: [IHyperPod, IRenderMimeRegistry],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    registry: IRenderMimeRegistry
  ): void => {
    const { trans } = hyperPod;
    registry.addFactory({
      // It asks nothing of an untrusted notebook before a click.
      safe: true,
      mimeTypes: [MIME_TYPE],
      defaultRank: RANK,
      createRenderer: () =>
        new RunOutput({
          trans,
          makeCard: (runId, name) => makeCard(app, hyperPod, runId, name)
        })
    });
  }
};
