import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, listOf, recordOf } from '../api';
import {
  decodeCluster,
  decodeTable,
  ICluster,
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
      listOf(recordOf(value, 'clusters'), 'clusters', decodeCluster)
    );
  }

  table(
    cluster: string,
    kind: TableKind,
    query: ITableQuery
  ): Promise<ITablePage> {
    const path = URLExt.join('clusters', encodeURIComponent(cluster), kind);
    return this._client.get(path, value => decodeTable(kind, value), {
      query: {
        limit: String(query.limit),
        cursor: query.cursor,
        sort: query.sort,
        filter: query.filter || undefined
      }
    });
  }

  private readonly _client: HyperPodClient;
}
