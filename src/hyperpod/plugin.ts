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
import type { HyperpodPage } from './page';

/**
 * Pages of HyperPod clusters as AWS knows them.
 */
export const hyperpodPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:aws',
  description: 'Shows what AWS knows of HyperPod clusters.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null
  ): void => {
    const { trans } = hyperPod;
    const tracker = new WidgetTracker<HyperpodPage>({
      namespace: 'hyperpod-aws-cluster'
    });
    app.commands.addCommand(CommandIDs.openHyperpodCluster, {
      label: trans.__('Open HyperPod Cluster'),
      caption: trans.__(
        'Show the instance groups and instances of a HyperPod cluster in your AWS account'
      ),
      icon: hyperPodIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            cluster: {
              type: 'string',
              description:
                'The cluster’s name in the configuration, or its name or ARN in AWS'
            },
            name: {
              type: 'string',
              description: 'What the page is called; default: the same'
            }
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
        const name = typeof args.name === 'string' ? args.name : cluster;
        return openCluster(app, hyperPod, tracker, { cluster, name });
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openHyperpodCluster,
        args: page => ({ cluster: page.cluster, name: page.title.label }),
        name: page => page.cluster
      });
    }
  }
};

async function openCluster(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<HyperpodPage>,
  { cluster, name }: { cluster: string; name: string }
): Promise<JSONObject> {
  await openPage(app, tracker, `hyperpod-aws-cluster-${cluster}`, async () => {
    const [{ NodeClient }, { nodeOpeners }, { EventClient }, { HyperpodPage }] =
      await Promise.all([
        import('../nodes/client'),
        import('../nodes/openers'),
        import('./eventClient'),
        import('./page')
      ]);
    const page = new HyperpodPage({
      cluster,
      client: hyperPod.clusterClient,
      nodeClient: new NodeClient(hyperPod.client),
      ...nodeOpeners(app, cluster, hyperPod.trans),
      eventClient: new EventClient(hyperPod.client),
      showMetrics: () =>
        void app.commands.execute(CommandIDs.openMetrics, { cluster }),
      trans: hyperPod.trans
    });
    page.title.label = name;
    page.title.caption = hyperPod.trans.__('HyperPod cluster %1', cluster);
    return page;
  });
  return { cluster };
}
