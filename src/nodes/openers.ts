import { JupyterFrontEnd } from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { ApiError } from '../api';
import { CommandIDs } from '../tokens';
import { whyText } from './words';

/**
 * What can be opened of a node, by its instance id.
 */
export interface INodeOpeners {
  readonly openTerminal: (instance: string) => void;
  readonly openLogs: (instance: string) => void;
}

/** Opens terminals and logs of a cluster's nodes; if a terminal cannot be opened, the user sees why. */
export function nodeOpeners(
  { commands }: JupyterFrontEnd,
  cluster: string,
  trans: TranslationBundle
): INodeOpeners {
  return {
    openTerminal: node =>
      void commands
        .execute(CommandIDs.openNodeTerminal, { cluster, node })
        .catch((reason: unknown) =>
          showErrorMessage(
            trans.__('Cannot open a terminal on %1', node),
            reason instanceof ApiError ? whyText(reason, trans) : String(reason)
          )
        ),
    openLogs: node =>
      void commands.execute(CommandIDs.openNodeLogs, { cluster, node })
  };
}
