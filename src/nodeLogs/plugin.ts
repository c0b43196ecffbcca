import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { JSONObject } from '@lumino/coreutils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { NodeLogPage } from './page';

const ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    cluster: {
      type: 'string',
      description: 'The HyperPod cluster’s name in AWS'
    },
    node: {
      type: 'string',
      description:
        'The node: its instance id, or its name in Slurm or Kubernetes. One that was replaced by its instance id'
    }
  },
  required: ['cluster', 'node'],
  additionalProperties: false
};

/**
 * Pages with the logs of nodes of HyperPod clusters.
 */
export const nodeLogsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:node-logs',
  description: 'Shows the logs of nodes of HyperPod clusters.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null
  ): void => {
    const { client, logSocket: socket, trans } = hyperPod;
    const tracker = new WidgetTracker<NodeLogPage>({
      namespace: 'hyperpod-node-logs'
    });
    app.commands.addCommand(CommandIDs.openNodeLogs, {
      label: trans.__('Show Logs of a HyperPod Node'),
      caption: trans.__(
        'Show the logs of lifecycle scripts and health checks of a HyperPod node'
      ),
      icon: hyperPodIcon,
      describedBy: { args: ARGUMENTS },
      execute: async args => {
        const { cluster, node } = args;
        if (typeof cluster !== 'string' || typeof node !== 'string') {
          throw new Error('cluster or node is missing');
        }
        await openPage(app, tracker, idOf(cluster, node), async () => {
          const { NodeLogPage } = await import('./page');
          const page = new NodeLogPage({
            client,
            cluster,
            node,
            socket,
            preferences: hyperPod.preferences,
            trans
          });
          page.title.label = trans.__('Logs of %1', node);
          page.title.caption = trans.__('Logs of %1 in %2', node, cluster);
          return page;
        });
        return { cluster, node };
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openNodeLogs,
        args: page => ({ cluster: page.cluster, node: page.instance }),
        name: page => idOf(page.cluster, page.instance)
      });
    }
  }
};

function idOf(cluster: string, node: string): string {
  return `hyperpod-node-logs-${cluster}-${node}`;
}
