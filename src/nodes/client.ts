import { HyperPodClient, Schema } from '../api';
import { pathOf } from '../clusters/client';
import {
  INodeAbility,
  INodeOrder,
  INodePlan,
  INodeResult,
  INodeTerminal
} from './types';

/**
 * The client of the server extension's routes on nodes. `cluster` is a name of the configuration, or a name or ARN in AWS.
 */
export class NodeClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** What can be done there. */
  async abilities(cluster: string): Promise<readonly INodeAbility[]> {
    const path = pathOf(cluster, 'nodes', 'actions');
    return (await this._client.get<Schema<'NodeAbilities'>>(path)).actions;
  }

  /** The consequences for nodes; nothing is done. */
  preview(cluster: string, order: INodeOrder): Promise<INodePlan> {
    const body: Schema<'NodeActionBody'> = order;
    const path = pathOf(cluster, 'nodes', 'actions', 'preview');
    return this._client.post(path, body);
  }

  /** Does something to nodes; one result each. */
  async act(
    cluster: string,
    order: INodeOrder
  ): Promise<readonly INodeResult[]> {
    const body: Schema<'NodeActionBody'> = order;
    const path = pathOf(cluster, 'nodes', 'actions');
    return (await this._client.post<Schema<'NodeResults'>>(path, body)).results;
  }

  /** How to open a terminal on a node of a HyperPod cluster; no session is begun. */
  terminal(cluster: string, node: string): Promise<INodeTerminal> {
    const name = encodeURIComponent(node);
    return this._client.post(pathOf(cluster, 'nodes', name, 'terminal'), {});
  }
}

/** What the rest needs of it; tests give one of their own. */
export type INodeClient = Pick<NodeClient, keyof NodeClient>;
