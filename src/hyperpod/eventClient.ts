import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Query } from '../api';
import type * as wire from '../api/types';
import {
  decodeEvent,
  decodeEvents,
  IEventDetail,
  IEventPage,
  IEventQuery
} from './eventTypes';

/**
 * Everything that is asked of the server on events of HyperPod clusters; tests give it one of their own.
 */
export interface IEventClient {
  /** A part of a cluster's events. */
  events(cluster: string, query: IEventQuery): Promise<IEventPage>;
  /** One event with its details. */
  event(cluster: string, id: string): Promise<IEventDetail>;
}

/**
 * The client of the server extension's routes on events.
 */
export class EventClient implements IEventClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  events(cluster: string, query: IEventQuery): Promise<IEventPage> {
    return this._client.get(pathOf(cluster), decodeEvents, {
      query: {
        limit: String(query.limit),
        cursor: query.cursor,
        sort: query.sort,
        filter: query.filter || undefined,
        refresh: query.refresh ? 'true' : undefined,
        level: query.level,
        group: query.group,
        node: query.node
      } satisfies Query<wire.IEventsQuery>
    });
  }

  event(cluster: string, id: string): Promise<IEventDetail> {
    const path = URLExt.join(pathOf(cluster), encodeURIComponent(id));
    return this._client.get(path, decodeEvent);
  }

  private readonly _client: HyperPodClient;
}

function pathOf(cluster: string): string {
  return URLExt.join('hyperpod', encodeURIComponent(cluster), 'events');
}
