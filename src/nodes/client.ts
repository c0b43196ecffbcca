import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';
import {
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
 * The client of the server extension's routes on nodes.
 */
export class NodeClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** What can be done there. */
  async abilities(whose: IWhoseNodes): Promise<readonly INodeAbility[]> {
    const path = actionsOf(whose);
    return (await this._client.get<Schema<'NodeAbilities'>>(path)).actions;
  }

  /** What would become of nodes; nothing is done. */
  preview(whose: IWhoseNodes, order: INodeOrder): Promise<INodePlan> {
    const body: Schema<'NodeActionBody'> = order;
    return this._client.post(URLExt.join(actionsOf(whose), 'preview'), body);
  }

  /** Does something to nodes; one result each. */
  async act(
    whose: IWhoseNodes,
    order: INodeOrder
  ): Promise<readonly INodeResult[]> {
    const body: Schema<'NodeActionBody'> = order;
    const path = actionsOf(whose);
    return (await this._client.post<Schema<'NodeResults'>>(path, body)).results;
  }

  /** How to open a terminal on a node of a HyperPod cluster; no session is begun. */
  terminal(cluster: string, node: string): Promise<INodeTerminal> {
    const path = URLExt.join(
      'hyperpod',
      encodeURIComponent(cluster),
      'nodes',
      encodeURIComponent(node),
      'terminal'
    );
    return this._client.post(path, {});
  }
}

/** What the rest needs of it; tests give one of their own. */
export type INodeClient = Pick<NodeClient, keyof NodeClient>;

function actionsOf({ cluster, kind }: IWhoseNodes): string {
  return URLExt.join(kind, encodeURIComponent(cluster), 'nodes', 'actions');
}
