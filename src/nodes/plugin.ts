import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { terminalIcon } from '@jupyterlab/ui-components';
import { JSONObject, ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { valueText } from '../clusters/types';
import { hyperPodIcon } from '../icons';
import { CommandIDs, IHyperPod } from '../tokens';
import type { INodeClient } from './client';
import { INodeOrder, INodeResult, NODE_ACTIONS } from './types';

type Arguments = ReadonlyPartialJSONObject;

const CLUSTER: JSONObject = {
  type: 'string',
  description:
    'The nodes’ cluster: its name in the configuration, or its name or ARN in AWS'
};

const ORDER: JSONObject = {
  cluster: CLUSTER,
  action: { type: 'string', enum: [...NODE_ACTIONS] },
  nodes: {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    maxItems: 500,
    description:
      'Instance ids, the scheduler’s names, or names in the private network'
  }
};

/**
 * Commands that do something to nodes of clusters, and that open terminals on them.
 */
export const nodesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:nodes',
  description: 'Acts on nodes of clusters, and opens terminals on them.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    palette: ICommandPalette | null
  ): void => {
    addPreview(app, hyperPod);
    addAction(app, hyperPod);
    addTerminal(app, hyperPod);
    palette?.addItem({
      command: CommandIDs.openNodeTerminal,
      category: hyperPod.trans.__('HyperPod')
    });
  }
};

function addPreview(app: JupyterFrontEnd, hyperPod: IHyperPod): void {
  const { trans } = hyperPod;
  app.commands.addCommand(CommandIDs.previewOnNodes, {
    label: trans.__('Preview an Action on Nodes'),
    caption: trans.__('Show the effects of an action on nodes and their jobs'),
    icon: hyperPodIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: ORDER,
        required: ['cluster', 'action', 'nodes'],
        additionalProperties: false
      }
    },
    execute: async args => {
      const client = await clientOf(hyperPod);
      return client.preview(textOf(args, 'cluster'), orderOf(args));
    }
  });
}

function addAction(app: JupyterFrontEnd, hyperPod: IHyperPod): void {
  const { trans } = hyperPod;
  app.commands.addCommand(CommandIDs.actOnNodes, {
    label: trans.__('Act on Nodes'),
    caption: trans.__(
      'Reboot, replace, drain or resume nodes; asks for confirmation first'
    ),
    icon: hyperPodIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...ORDER,
          reason: { type: 'string', description: 'With drain: why' }
        },
        required: ['cluster', 'action', 'nodes'],
        additionalProperties: false
      }
    },
    execute: async args => {
      const { action, nodes } = orderOf(args);
      const [client, { askAndAct }] = await Promise.all([
        clientOf(hyperPod),
        import('./useNodeActions')
      ]);
      const results = await askAndAct(client, textOf(args, 'cluster'), {
        action,
        names: nodes,
        reason: typeof args.reason === 'string' ? args.reason : undefined,
        tell: () => undefined,
        goesOn: () => true,
        trans
      });
      return results === null ? null : { results: results.map(plainResult) };
    }
  });
}

function addTerminal(app: JupyterFrontEnd, hyperPod: IHyperPod): void {
  const { trans } = hyperPod;
  app.commands.addCommand(CommandIDs.openNodeTerminal, {
    label: trans.__('Open Terminal on a Node…'),
    caption: trans.__(
      'Open a session on a HyperPod node with AWS Systems Manager, or show the command for it'
    ),
    icon: terminalIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          cluster: CLUSTER,
          node: {
            type: 'string',
            description: 'Its instance id, or its name in Slurm or Kubernetes'
          }
        },
        additionalProperties: false
      }
    },
    execute: async args => {
      const place =
        args.cluster === undefined && args.node === undefined
          ? await pickNode(hyperPod)
          : { cluster: textOf(args, 'cluster'), node: textOf(args, 'node') };
      if (place === null) {
        return null;
      }
      const [client, { openNodeTerminal }] = await Promise.all([
        clientOf(hyperPod),
        import('./terminal')
      ]);
      const terminal = await client.terminal(place.cluster, place.node);
      const opened = await openNodeTerminal(app, terminal, trans);
      const missing = terminal.missing.map(({ name }) => name);
      const { instance, line } = terminal;
      return { instance, command: line, missing, opened };
    }
  });
}

/** The most nodes to pick from. */
const MOST_NODES = 1000;

/** Let the user pick a HyperPod cluster and one of its nodes; null: none was picked. */
async function pickNode({
  clusterClient,
  trans
}: IHyperPod): Promise<{ cluster: string; node: string } | null> {
  const { quickPick } = await import('../components/quickPick');
  const { clusters } = await clusterClient.list({ limit: MOST_NODES });
  const title = trans.__('Open a terminal on a node');
  const cluster = await quickPick(
    {
      title,
      verb: trans.__('Next'),
      picks: clusters
        .filter(one => one.hyperpod !== null)
        .map(({ name, orchestrator }) => ({
          id: name,
          label: name,
          detail: orchestrator
        })),
      empty: trans.__('There are no HyperPod clusters.')
    },
    trans
  );
  if (cluster === null) {
    return null;
  }
  const { rows } = await clusterClient.table(cluster, 'nodes', {
    limit: MOST_NODES
  });
  const node = await quickPick(
    {
      title,
      verb: trans.__('Open'),
      picks: rows
        .filter(one => Boolean(one.instance))
        .map(one => ({
          id: valueText(one.instance),
          label: valueText(one.name ?? one.instance),
          detail: valueText(one.instance_group)
        })),
      empty: trans.__('The cluster has no nodes.')
    },
    trans
  );
  return node === null ? null : { cluster, node };
}

/** The client, whose code is loaded once it is needed. */
async function clientOf({ client }: IHyperPod): Promise<INodeClient> {
  const { NodeClient } = await import('./client');
  return new NodeClient(client);
}

function orderOf(args: Arguments): INodeOrder {
  const action = NODE_ACTIONS.find(one => one === args.action);
  if (action === undefined) {
    throw new Error(`action must be one of ${NODE_ACTIONS.join(', ')}`);
  }
  const nodes: readonly unknown[] = Array.isArray(args.nodes) ? args.nodes : [];
  const names = nodes.filter(node => typeof node === 'string');
  if (names.length === 0 || names.length < nodes.length) {
    throw new Error('nodes must be a list of names');
  }
  return { action, nodes: names };
}

function textOf(args: Arguments, name: string): string {
  const value = args[name];
  if (typeof value !== 'string' || value === '') {
    throw new Error(`${name} is missing`);
  }
  return value;
}

function plainResult({ error, instance, name, node }: INodeResult): JSONObject {
  return {
    name,
    instance,
    node,
    ok: error === null,
    error:
      error === null
        ? null
        : { code: error.code, message: error.message, hint: error.hint }
  };
}
