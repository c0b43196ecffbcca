import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { UsagePage } from './page';

const PAGE = 'hyperpod-usage';

/**
 * The page of who used how much of the clusters.
 */
export const costPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:cost',
  description: 'Shows who used how much of the clusters, and what it cost.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const { trans } = hyperPod;
    const tracker = new WidgetTracker<UsagePage>({ namespace: PAGE });
    app.commands.addCommand(CommandIDs.openUsage, {
      label: trans.__('Usage and Cost'),
      caption: trans.__(
        'Show who used how many node-hours and GPU-hours, and what they cost'
      ),
      icon: hyperPodIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            cluster: {
              type: 'string',
              description: 'Only this cluster: its name in the configuration'
            }
          },
          additionalProperties: false
        }
      },
      execute: async ({ cluster }) => {
        const page = await openPage(app, tracker, PAGE, () =>
          makePage(hyperPod)
        );
        if (typeof cluster === 'string') {
          page.showCluster(cluster);
        }
        return { page: PAGE };
      }
    });
    palette?.addItem({
      command: CommandIDs.openUsage,
      category: trans.__('HyperPod')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openUsage,
        name: page => page.id
      });
    }
  }
};

async function makePage(hyperPod: IHyperPod): Promise<UsagePage> {
  const [{ CostClient }, { UsagePage }] = await Promise.all([
    import('./client'),
    import('./page')
  ]);
  const { client, clusterClient, trans } = hyperPod;
  const page = new UsagePage({
    client: new CostClient(client),
    clusters: async () =>
      (await clusterClient.configured()).map(({ name }) => name),
    trans
  });
  page.title.label = trans.__('Usage');
  page.title.caption = trans.__('Usage and cost');
  return page;
}
