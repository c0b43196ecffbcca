import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Query } from '../api';
import type * as wire from '../api/types';
import { ITablePage, ITableQuery } from '../clusters/types';
import { decodeGovernance, IGovernance } from './governanceTypes';
import {
  decodeDetail,
  decodeList,
  decodeNodes,
  IHyperpodDetail,
  IHyperpodList
} from './types';

/**
 * Everything that is asked of the server on HyperPod clusters; tests give it one of their own.
 *
 * With `refresh` AWS is asked now, else the server may answer what it was told a moment ago.
 */
export interface IHyperpodClient {
  /** The first clusters of a region by name, at most so many; null: the region that the server finds. */
  list(
    limit: number,
    refresh: boolean,
    region: string | null
  ): Promise<IHyperpodList>;
  /** One cluster, by its name; in another region than the one that the server finds by its ARN. */
  cluster(name: string, refresh: boolean): Promise<IHyperpodDetail>;
  /** Quotas and policies of a cluster on EKS. */
  governance(name: string, refresh: boolean): Promise<IGovernance>;
  /** A part of a cluster's nodes. */
  nodes(name: string, query: ITableQuery): Promise<ITablePage>;
}

/**
 * The client of the server extension's routes on HyperPod clusters.
 */
export class HyperpodClient implements IHyperpodClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  list(
    limit: number,
    refresh: boolean,
    region: string | null
  ): Promise<IHyperpodList> {
    return this._client.get('hyperpod', decodeList, {
      query: {
        limit: String(limit),
        refresh: refresh ? 'true' : undefined,
        region: region ?? undefined
      } satisfies Query<wire.IHyperpodListQuery>
    });
  }

  cluster(name: string, refresh: boolean): Promise<IHyperpodDetail> {
    return this._client.get(pathOf(name), decodeDetail, {
      query: {
        refresh: refresh ? 'true' : undefined
      } satisfies Query<wire.IHyperpodQuery>
    });
  }

  governance(name: string, refresh: boolean): Promise<IGovernance> {
    return this._client.get(
      URLExt.join(pathOf(name), 'governance'),
      decodeGovernance,
      {
        query: {
          refresh: refresh ? 'true' : undefined
        } satisfies Query<wire.IHyperpodQuery>
      }
    );
  }

  nodes(name: string, query: ITableQuery): Promise<ITablePage> {
    return this._client.get(URLExt.join(pathOf(name), 'nodes'), decodeNodes, {
      query: {
        limit: String(query.limit),
        cursor: query.cursor,
        sort: query.sort,
        filter: query.filter || undefined,
        refresh: query.refresh ? 'true' : undefined
      } satisfies Query<wire.IHyperpodTableQuery>
    });
  }

  private readonly _client: HyperPodClient;
}

function pathOf(name: string): string {
  return URLExt.join('hyperpod', encodeURIComponent(name));
}
