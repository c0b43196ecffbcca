import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient } from '../api';
import type * as wire from '../api/types';
import {
  decodeAbilities,
  decodeNodeResults,
  decodePlan,
  decodeTerminal,
  INodeAbility,
  INodeOrder,
  INodePlan,
  INodeResult,
  INodeTerminal
} from './types';

/**
 * Whose nodes: of a HyperPod cluster by its name in AWS, or of a cluster of the configuration.
 */
export interface IWhoseNodes {
  readonly kind: 'hyperpod' | 'clusters';
  readonly cluster: string;
}

/**
 * Everything that is asked of the server to do something to nodes; tests give it one of their own.
 */
export interface INodeClient {
  /** What can be done there. */
  abilities(whose: IWhoseNodes): Promise<readonly INodeAbility[]>;
  /** What would become of nodes; nothing is done. */
  preview(whose: IWhoseNodes, order: INodeOrder): Promise<INodePlan>;
  /** Does something to nodes; one result each. */
  act(whose: IWhoseNodes, order: INodeOrder): Promise<readonly INodeResult[]>;
  /** How to open a terminal on a node of a HyperPod cluster; no session is begun. */
  terminal(cluster: string, node: string): Promise<INodeTerminal>;
}

/**
 * The client of the server extension's routes on nodes.
 */
export class NodeClient implements INodeClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  abilities(whose: IWhoseNodes): Promise<readonly INodeAbility[]> {
    return this._client.get(actionsOf(whose), decodeAbilities);
  }

  preview(whose: IWhoseNodes, order: INodeOrder): Promise<INodePlan> {
    const path = URLExt.join(actionsOf(whose), 'preview');
    return this._client.post(path, bodyOf(order), decodePlan);
  }

  act(whose: IWhoseNodes, order: INodeOrder): Promise<readonly INodeResult[]> {
    return this._client.post(
      actionsOf(whose),
      bodyOf(order),
      decodeNodeResults
    );
  }

  terminal(cluster: string, node: string): Promise<INodeTerminal> {
    const path = URLExt.join(
      'hyperpod',
      encodeURIComponent(cluster),
      'nodes',
      encodeURIComponent(node),
      'terminal'
    );
    return this._client.post(path, {}, decodeTerminal);
  }

  private readonly _client: HyperPodClient;
}

function actionsOf({ cluster, kind }: IWhoseNodes): string {
  return URLExt.join(kind, encodeURIComponent(cluster), 'nodes', 'actions');
}

function bodyOf(order: INodeOrder): wire.INodeActionBody {
  return { action: order.action, nodes: order.nodes, reason: order.reason };
}
