import { HyperPodClient, Schema } from '../api';
import { pathOf } from '../clusters/client';
import { IEventDetail, IEventPage, IEventQuery } from './types';

/**
 * The client of the server extension's routes on events.
 */
export class EventClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** A part of a cluster's events. */
  async events(cluster: string, query: IEventQuery): Promise<IEventPage> {
    const { events, ...page } = await this._client.get<
      Schema<'HyperpodEvents'>
    >(pathOf(cluster, 'events'), {
      query: {
        ...query,
        filter: query.filter || undefined
      } satisfies Schema<'EventsQuery'>
    });
    return { ...page, rows: events };
  }

  /** One event with its details. */
  event(cluster: string, id: string): Promise<IEventDetail> {
    return this._client.get(pathOf(cluster, 'events', encodeURIComponent(id)));
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IEventClient = Pick<EventClient, keyof EventClient>;
