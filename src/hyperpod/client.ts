import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';
import { ITablePage, ITableQuery } from '../clusters/types';
import { IGovernance } from './governanceTypes';
import { IHyperpodDetail, IHyperpodList } from './types';

/**
 * The client of the server extension’s routes on HyperPod clusters. With `refresh` AWS is asked now, else the server may answer what it was told a moment ago.
 */
export class HyperpodClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** The first clusters of a region by name, at most so many; null: the region that the server finds. */
  list(
    limit: number,
    refresh: boolean,
    region: string | null
  ): Promise<IHyperpodList> {
    return this._client.get('hyperpod', {
      query: {
        limit,
        region,
        refresh: refresh || undefined
      } satisfies Schema<'HyperpodListQuery'>
    });
  }

  /** One cluster, by its name; in another region than the one that the server finds by its ARN. */
  cluster(name: string, refresh: boolean): Promise<IHyperpodDetail> {
    return this._client.get(pathOf(name), { query: refreshing(refresh) });
  }

  /** Quotas and policies of a cluster on EKS. */
  governance(name: string, refresh: boolean): Promise<IGovernance> {
    const path = URLExt.join(pathOf(name), 'governance');
    return this._client.get(path, { query: refreshing(refresh) });
  }

  /** A part of a cluster's nodes. */
  async nodes(name: string, query: ITableQuery): Promise<ITablePage> {
    const path = URLExt.join(pathOf(name), 'nodes');
    const { nodes, ...page } = await this._client.get<Schema<'HyperpodNodes'>>(
      path,
      {
        query: {
          ...query,
          filter: query.filter || undefined,
          refresh: query.refresh || undefined
        } satisfies Schema<'HyperpodTableQuery'>
      }
    );
    return { ...page, rows: nodes };
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IHyperpodClient = Pick<HyperpodClient, keyof HyperpodClient>;

function pathOf(name: string): string {
  return URLExt.join('hyperpod', encodeURIComponent(name));
}

function refreshing(refresh: boolean): Schema<'HyperpodQuery'> {
  return { refresh: refresh || undefined };
}
