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
import type { ClusterPage } from './page';

/**
 * Cluster pages.
 */
export const clustersPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:clusters',
  description: 'Shows the nodes, queues and jobs of HyperPod clusters.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null
  ): void => {
    const { trans } = hyperPod;
    const tracker = new WidgetTracker<ClusterPage>({
      namespace: 'hyperpod-cluster'
    });
    app.commands.addCommand(CommandIDs.openCluster, {
      label: trans.__('Open Cluster'),
      caption: trans.__('Show the nodes, queues and jobs of a cluster'),
      icon: hyperPodIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            cluster: { type: 'string', description: 'The cluster’s name' }
          },
          required: ['cluster'],
          additionalProperties: false
        }
      },
      execute: async args => {
        const { cluster } = args;
        if (typeof cluster !== 'string') {
          throw new Error('cluster is missing');
        }
        return openCluster(app, hyperPod, tracker, cluster);
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openCluster,
        args: page => ({ cluster: page.cluster }),
        name: page => page.cluster
      });
    }
  }
};

async function openCluster(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<ClusterPage>,
  cluster: string
): Promise<JSONObject> {
  await openPage(app, tracker, `hyperpod-cluster-${cluster}`, async () => {
    const [{ NodeClient }, { nodeOpeners }, { ClusterPage }] =
      await Promise.all([
        import('../nodes/client'),
        import('../nodes/openers'),
        import('./page')
      ]);
    const page = new ClusterPage({
      cluster,
      client: hyperPod.clusterClient,
      nodeClient: new NodeClient(hyperPod.client),
      ...nodeOpeners(app, cluster, hyperPod.trans),
      openRun: runId => void hyperPod.openRun(runId),
      runChanged: hyperPod.runs.stateChanged,
      trans: hyperPod.trans
    });
    page.title.label = cluster;
    return page;
  });
  return { cluster };
}
