import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  InputDialog,
  WidgetTracker
} from '@jupyterlab/apputils';
import { JSONObject } from '@lumino/coreutils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { MetricsPage } from './page';

/** Whose metrics a page shows. */
interface IWhose {
  readonly cluster: string;
  readonly node: string | null;
}

const ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    cluster: {
      type: 'string',
      description:
        'The cluster’s name in the configuration, or its name or ARN in AWS; it is asked for when it is missing'
    },
    node: {
      type: 'string',
      description: 'Only this node: its instance id'
    }
  },
  additionalProperties: false
};

/**
 * Pages with the metrics of HyperPod clusters and of their nodes.
 */
export const metricsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:metrics',
  description: 'Shows metrics of HyperPod clusters and of their nodes.',
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
    const tracker = new WidgetTracker<MetricsPage>({
      namespace: 'hyperpod-metrics'
    });
    app.commands.addCommand(CommandIDs.openMetrics, {
      label: trans.__('Show Metrics of a HyperPod Cluster…'),
      caption: trans.__(
        'Show GPU and EFA usage and health of a HyperPod cluster or node'
      ),
      icon: hyperPodIcon,
      describedBy: {
        args: ARGUMENTS
      },
      execute: async args => {
        const cluster =
          typeof args.cluster === 'string'
            ? args.cluster
            : await askForCluster(hyperPod);
        if (!cluster) {
          return null;
        }
        const node = typeof args.node === 'string' ? args.node : null;
        return openMetrics(app, hyperPod, tracker, { cluster, node });
      }
    });
    palette?.addItem({
      command: CommandIDs.openMetrics,
      category: trans.__('HyperPod')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openMetrics,
        args: page => ({
          cluster: page.cluster,
          ...(page.instance === null ? {} : { node: page.instance })
        }),
        name: page => idOf({ cluster: page.cluster, node: page.instance })
      });
    }
  }
};

async function askForCluster(hyperPod: IHyperPod): Promise<string | null> {
  const { trans } = hyperPod;
  const { value } = await InputDialog.getText({
    title: trans.__('HyperPod cluster'),
    label: trans.__('Cluster name in AWS'),
    okLabel: trans.__('Show')
  });
  return value ? value.trim() : null;
}

async function openMetrics(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<MetricsPage>,
  whose: IWhose
): Promise<JSONObject> {
  const { client, trans } = hyperPod;
  await openPage(app, tracker, idOf(whose), async () => {
    const [{ MetricsClient }, { MetricsPage }] = await Promise.all([
      import('./client'),
      import('./page')
    ]);
    const page = new MetricsPage({
      ...whose,
      client: new MetricsClient(client),
      trans
    });
    page.title.label = trans.__('Metrics of %1', whose.node ?? whose.cluster);
    return page;
  });
  return { ...whose };
}

function idOf(whose: IWhose): string {
  return `hyperpod-metrics-${whose.cluster}-${whose.node ?? ''}`;
}
