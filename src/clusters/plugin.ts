import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { JSONObject, ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { ClusterPage } from './page';
import { clusterStateText } from './states';

/**
 * Cluster pages.
 */
export const clustersPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:clusters',
  description: 'Shows the nodes, queues and jobs of HyperPod clusters.',
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
    const tracker = new WidgetTracker<ClusterPage>({
      namespace: 'hyperpod-cluster'
    });
    app.commands.addCommand(CommandIDs.openCluster, {
      label: trans.__('Open Cluster…'),
      caption: trans.__('Show the nodes, queues and jobs of a cluster'),
      icon: hyperPodIcon,
      describedBy: { args: ARGUMENTS },
      execute: async args => {
        const cluster =
          typeof args.cluster === 'string'
            ? args.cluster
            : await pickCluster(hyperPod);
        return cluster === null
          ? null
          : openCluster(app, hyperPod, tracker, { ...args, cluster });
      }
    });
    app.commands.addCommand(CommandIDs.connectCluster, {
      label: trans.__('Connect Cluster…'),
      caption: trans.__(
        'Add a HyperPod cluster of your AWS account to the configuration'
      ),
      describedBy: { args: CONNECT_ARGUMENTS },
      execute: async args => {
        const { cluster } = args;
        if (typeof cluster !== 'string') {
          throw new Error('cluster is missing');
        }
        const { connectCluster } = await import('./connect');
        const name = await connectCluster(hyperPod, cluster);
        if (name !== null) {
          await app.commands.execute(CommandIDs.openCluster, { cluster: name });
        }
        return { cluster: name };
      }
    });
    app.commands.addCommand(CommandIDs.disconnectCluster, {
      label: trans.__('Disconnect Cluster…'),
      caption: trans.__('Remove a cluster from the configuration'),
      describedBy: { args: DISCONNECT_ARGUMENTS },
      execute: async args => {
        const { cluster } = args;
        if (typeof cluster !== 'string') {
          throw new Error('cluster is missing');
        }
        const { disconnectCluster } = await import('./connect');
        const isDone = await disconnectCluster(hyperPod, cluster);
        if (isDone) {
          tracker.find(page => page.cluster === cluster)?.dispose();
        }
        return { disconnected: isDone };
      }
    });
    palette?.addItem({
      command: CommandIDs.openCluster,
      category: trans.__('HyperPod')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openCluster,
        args: page => ({
          cluster: page.cluster,
          name: page.title.label,
          tab: page.tab
        }),
        name: page => page.cluster
      });
    }
  }
};

const CONNECT_ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    cluster: { type: 'string', description: 'Its name or ARN in AWS' }
  },
  required: ['cluster'],
  additionalProperties: false
};

const DISCONNECT_ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    cluster: { type: 'string', description: 'Its name in the configuration' }
  },
  required: ['cluster'],
  additionalProperties: false
};

const ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    cluster: {
      type: 'string',
      description:
        'The cluster’s name in the configuration, or its name or ARN in AWS; it is asked for when it is missing'
    },
    name: {
      type: 'string',
      description: 'The page’s title; default: the cluster'
    },
    tab: {
      type: 'string',
      description:
        'The tab in view: overview, jobs, queues, nodes, metrics, events or settings'
    }
  },
  additionalProperties: false
};

/** Let the user pick a cluster; null: none was picked. */
async function pickCluster({
  clusterClient,
  clusters,
  trans
}: IHyperPod): Promise<string | null> {
  const { quickPick } = await import('../components/quickPick');
  const found = clusters.clusters ?? (await clusterClient.configured());
  const picks = found.map(({ name, orchestrator, state }) => ({
    id: name,
    label: name,
    detail: `${orchestrator} · ${clusterStateText(state, trans)}`
  }));
  return quickPick(
    {
      title: trans.__('Open a cluster'),
      verb: trans.__('Open'),
      picks,
      empty: trans.__('There are no clusters.')
    },
    trans
  );
}

async function openCluster(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<ClusterPage>,
  args: ReadonlyPartialJSONObject & { cluster: string }
): Promise<JSONObject> {
  const { cluster, name, tab } = args;
  const { client, clusterClient, trans } = hyperPod;
  await openPage(app, tracker, `hyperpod-cluster-${cluster}`, async () => {
    const [
      { NodeClient },
      { nodeOpeners },
      { EventClient },
      { MetricsClient },
      { ClusterPage, tabNamed }
    ] = await Promise.all([
      import('../nodes/client'),
      import('../nodes/openers'),
      import('../events/client'),
      import('../metrics/client'),
      import('./page')
    ]);
    const page = new ClusterPage({
      cluster,
      client: clusterClient,
      store: hyperPod.clusters,
      nodeClient: new NodeClient(client),
      eventClient: new EventClient(client),
      metricsClient: new MetricsClient(client),
      ...nodeOpeners(app, cluster, trans),
      tab: tabNamed(tab),
      newRun: () => void app.commands.execute(CommandIDs.newRun, { cluster }),
      connect: row =>
        void app.commands.execute(CommandIDs.connectCluster, {
          cluster: row.hyperpod?.arn ?? row.name
        }),
      openRun: runId => void hyperPod.openRun(runId),
      trans
    });
    page.tabChanged.connect(() => void tracker.save(page));
    page.title.label = typeof name === 'string' ? name : cluster;
    return page;
  });
  return { cluster };
}
