import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';
import {
  ICluster,
  IClusterDetail,
  IClusterPage,
  IJobOrder,
  IJobResult,
  ITablePage,
  ITableQuery,
  runRow,
  TableKind
} from './types';

/** The most rows that the server sends at once. */
const MAX_ROWS = 1000;

/**
 * The client of the server extension's cluster routes. `cluster` is a name of the configuration, or a name or ARN in AWS.
 *
 * With `refresh`, the server queries the scheduler and AWS now. Otherwise it may answer from its caches.
 */
export class ClusterClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** Some clusters: the configured ones come first. */
  list(query: Schema<'ClustersQuery'>): Promise<IClusterPage> {
    return this._client.get('clusters', {
      query: {
        sort: '-configured',
        ...query
      } satisfies Schema<'ClustersQuery'>
    });
  }

  /** The configured clusters; AWS is not asked. */
  async configured(refresh = false): Promise<readonly ICluster[]> {
    return (await this.list({ configured: true, refresh, limit: MAX_ROWS }))
      .clusters;
  }

  /** One cluster. */
  cluster(cluster: string, refresh: boolean): Promise<IClusterDetail> {
    return this._client.get(pathOf(cluster), {
      query: { refresh } satisfies Schema<'LiveQuery'>
    });
  }

  /** A configured cluster at a glance. */
  overview(
    cluster: string,
    refresh: boolean
  ): Promise<Schema<'ClusterOverview'>> {
    return this._client.get(pathOf(cluster, 'overview'), {
      query: { refresh } satisfies Schema<'LiveQuery'>
    });
  }

  /** Quotas and policies of a cluster on EKS. */
  governance(
    cluster: string,
    refresh: boolean
  ): Promise<Schema<'ClusterGovernance'>> {
    return this._client.get(pathOf(cluster, 'governance'), {
      query: { refresh } satisfies Schema<'LiveQuery'>
    });
  }

  table(
    cluster: string,
    kind: TableKind,
    query: ITableQuery
  ): Promise<ITablePage> {
    switch (kind) {
      case 'nodes':
        return this._nodes(cluster, query);
      case 'queues':
        return this._queues(cluster, query);
      case 'runs':
        return this._runs(cluster, query);
      case 'ended':
        return this._ended(cluster, query);
      default:
        return this._jobs(cluster, query);
    }
  }

  /** Does something to jobs; one result each. */
  async act(cluster: string, order: IJobOrder): Promise<readonly IJobResult[]> {
    const { action, change, jobs } = order;
    const body: Schema<'JobActionBody'> = { action, jobs, ...change };
    const path = pathOf(cluster, 'jobs', 'actions');
    return (await this._client.post<Schema<'JobResults'>>(path, body)).results;
  }

  /** The names of the queues that may be given; none where they are not known. */
  async queues(cluster: string): Promise<readonly string[]> {
    const path = pathOf(cluster, 'choices');
    const { choices } = await this._client.get<Schema<'Choices'>>(path);
    return choices.queue ?? [];
  }

  private async _nodes(
    cluster: string,
    query: ITableQuery
  ): Promise<ITablePage> {
    const { nodes, ...page } = await this._client.get<Schema<'Nodes'>>(
      pathOf(cluster, 'nodes'),
      {
        query: queryOf(query) satisfies Schema<'LiveTableQuery'>
      }
    );
    return { ...page, rows: nodes };
  }

  private async _queues(
    cluster: string,
    query: ITableQuery
  ): Promise<ITablePage> {
    const { queues, ...page } = await this._client.get<Schema<'Queues'>>(
      pathOf(cluster, 'queues'),
      { query: queryOf(query) satisfies Schema<'LiveTableQuery'> }
    );
    return { ...page, rows: queues };
  }

  private async _jobs(
    cluster: string,
    query: ITableQuery
  ): Promise<ITablePage> {
    const { jobs, ...page } = await this._client.get<Schema<'Jobs'>>(
      pathOf(cluster, 'jobs'),
      {
        query: { ...queryOf(query), ended: false } satisfies Schema<'JobsQuery'>
      }
    );
    return { ...page, rows: jobs };
  }

  /** The jobs that have ended, as far back as the cluster knows. */
  private async _ended(
    cluster: string,
    { cursor, filter, limit }: ITableQuery
  ): Promise<ITablePage> {
    const user = filter?.trim() || undefined;
    const { jobs, ...page } = await this._client.get<Schema<'EndedJobs'>>(
      pathOf(cluster, 'jobs', 'ended'),
      {
        query: { limit, cursor, user } satisfies Schema<'EndedJobsQuery'>,
        // The accounting of a large cluster is slow.
        timeout: 120
      }
    );
    return { ...page, rows: jobs, total: null };
  }

  private async _runs(
    cluster: string,
    { cursor, limit }: ITableQuery
  ): Promise<ITablePage> {
    const { next, runs } = await this._client.get<Schema<'RunList'>>('runs', {
      query: {
        limit,
        cursor,
        cluster,
        state: ['succeeded', 'failed', 'cancelled']
      } satisfies Schema<'RunsQuery'>
    });
    return { rows: runs.map(runRow), next, total: null };
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IClusterClient = Pick<ClusterClient, keyof ClusterClient>;

/** A route of a cluster. */
export function pathOf(cluster: string, ...rest: string[]): string {
  return URLExt.join('clusters', encodeURIComponent(cluster), ...rest);
}

function queryOf(query: ITableQuery): Schema<'LiveTableQuery'> {
  const { cursor, filter, limit, refresh, sort } = query;
  return { limit, cursor, sort, filter: filter || undefined, refresh };
}
