import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';
import { IEventDetail, IEventPage, IEventQuery } from './eventTypes';

/**
 * The client of the server extension's routes on events.
 */
export class EventClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** A part of a cluster's events. */
  async events(cluster: string, query: IEventQuery): Promise<IEventPage> {
    const { events, ...page } = await this._client.get<
      Schema<'HyperpodEvents'>
    >(pathOf(cluster), {
      query: {
        ...query,
        filter: query.filter || undefined,
        refresh: query.refresh || undefined
      } satisfies Schema<'EventsQuery'>
    });
    return { ...page, rows: events };
  }

  /** One event with its details. */
  event(cluster: string, id: string): Promise<IEventDetail> {
    const path = URLExt.join(pathOf(cluster), encodeURIComponent(id));
    return this._client.get(path);
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IEventClient = Pick<EventClient, keyof EventClient>;

function pathOf(cluster: string): string {
  return URLExt.join('hyperpod', encodeURIComponent(cluster), 'events');
}
