import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, listOf, Query, recordOf, textOf } from '../api';
import type * as wire from '../api/types';
import {
  decodeCluster,
  decodeQueueNames,
  decodeResults,
  decodeRuns,
  decodeTable,
  ICluster,
  IJobOrder,
  IJobResult,
  ITablePage,
  ITableQuery,
  TableKind
} from './types';

/**
 * Everything that is asked of the server on clusters; tests give it one of their own.
 */
export interface IClusterClient {
  list(): Promise<readonly ICluster[]>;
  table(
    cluster: string,
    kind: TableKind,
    query: ITableQuery
  ): Promise<ITablePage>;
  /** Does something to jobs; one result each. */
  act(cluster: string, order: IJobOrder): Promise<readonly IJobResult[]>;
  /** Makes a job that was sent elsewhere a run; its id. */
  adopt(cluster: string, job: string): Promise<string>;
  /** The names of the queues that may be given; none where they are not known. */
  queues(cluster: string): Promise<readonly string[]>;
}

/**
 * The client of the server extension's cluster routes.
 */
export class ClusterClient implements IClusterClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  list(): Promise<readonly ICluster[]> {
    return this._client.get('clusters', value =>
      listOf(
        recordOf<wire.IClusters>(value, 'clusters'),
        'clusters',
        decodeCluster
      )
    );
  }

  table(
    cluster: string,
    kind: TableKind,
    query: ITableQuery
  ): Promise<ITablePage> {
    if (kind === 'runs') {
      return this._client.get('runs', decodeRuns, {
        query: {
          limit: String(query.limit),
          cursor: query.cursor,
          cluster,
          state: 'succeeded,failed,cancelled'
        } satisfies Query<wire.IRunsQuery>
      });
    }
    const name = kind === 'ended' ? 'jobs' : kind;
    const path = URLExt.join('clusters', encodeURIComponent(cluster), name);
    return this._client.get(path, value => decodeTable(name, value), {
      query: {
        limit: String(query.limit),
        cursor: query.cursor,
        sort: query.sort,
        filter: query.filter || undefined,
        ended: name === 'jobs' ? String(kind === 'ended') : undefined
      } satisfies Query<wire.IJobsQuery>
    });
  }

  act(cluster: string, order: IJobOrder): Promise<readonly IJobResult[]> {
    const path = URLExt.join(
      'clusters',
      encodeURIComponent(cluster),
      'jobs',
      'actions'
    );
    const body: wire.IJobActionBody = {
      action: order.action,
      jobs: order.jobs,
      time_limit: order.change?.timeLimit,
      queue: order.change?.queue
    };
    return this._client.post(path, body, decodeResults);
  }

  adopt(cluster: string, job: string): Promise<string> {
    const path = URLExt.join(
      'clusters',
      encodeURIComponent(cluster),
      'jobs',
      encodeURIComponent(job),
      'adopt'
    );
    const body: wire.IAdoptBody = {};
    return this._client.post(path, body, value =>
      textOf(recordOf<wire.IRun>(value, 'run'), 'run_id')
    );
  }

  queues(cluster: string): Promise<readonly string[]> {
    const path = URLExt.join(
      'clusters',
      encodeURIComponent(cluster),
      'choices'
    );
    return this._client.get(path, decodeQueueNames);
  }

  private readonly _client: HyperPodClient;
}
