import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { showErrorMessage, WidgetTracker } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { JSONObject } from '@lumino/coreutils';

import { ApiError } from '../api';
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
              description: 'The HyperPod cluster’s name in AWS, or its ARN'
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
    const [{ NodeClient }, { EventClient }, { HyperpodPage }] =
      await Promise.all([
        import('../nodes/client'),
        import('./eventClient'),
        import('./page')
      ]);
    const page = new HyperpodPage({
      cluster,
      client: hyperPod.hyperpodClient,
      nodeClient: new NodeClient(hyperPod.client),
      openTerminal: node =>
        void openTerminal(app, { hyperpod: cluster, node }, hyperPod.trans),
      openLogs: node =>
        void app.commands.execute(CommandIDs.openNodeLogs, { cluster, node }),
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

/** What the page does with the command; its failures are told to the user. */
async function openTerminal(
  app: JupyterFrontEnd,
  whose: { hyperpod: string; node: string },
  trans: TranslationBundle
): Promise<void> {
  try {
    await app.commands.execute(CommandIDs.openNodeTerminal, whose);
  } catch (reason) {
    const { whyText } = await import('../nodes/words');
    await showErrorMessage(
      trans.__('Cannot open a terminal on %1', whose.node),
      reason instanceof ApiError ? whyText(reason, trans) : String(reason)
    );
  }
}
