import { answerOf } from '../../__tests__/answers';
import { IEventClient } from '../client';
import { IEventDetail, IEventPage, IEventQuery } from '../types';
import { AGED } from '../../clusters/__tests__/clusterFakes';

/** An event, as the server sends it. */
export const EVENT = {
  event_id: 'e-1',
  time: '2026-11-21T18:54:51.000Z',
  level: 'error',
  resource: 'instance',
  group: 'workers',
  instance: 'i-0123456789abcdef0',
  description: 'Node is unhealthy.',
  reason: null,
  times: 2
};
const OLD = {
  ...EVENT,
  event_id: 'e-0',
  level: 'Critical',
  description: null,
  times: 1
};

/**
 * A server that has two events, and remembers what it was asked.
 */
export class FakeEventClient implements IEventClient {
  readonly queries: IEventQuery[] = [];
  readonly asked: string[] = [];
  next: string | null = null;
  failure: Error | null = null;

  events(_: string, query: IEventQuery): Promise<IEventPage> {
    this.queries.push(query);
    return this.failure
      ? Promise.reject(this.failure)
      : Promise.resolve({
          ...AGED,
          rows: [EVENT, OLD].map(event => answerOf('HyperpodEvent', event)),
          next: this.next,
          total: 2,
          groups: ['workers'],
          instances: [EVENT.instance]
        });
  }

  event(_: string, id: string): Promise<IEventDetail> {
    this.asked.push(id);
    const metadata = { Instance: { FailureMessage: 'exit code 1' } };
    return Promise.resolve(
      answerOf('HyperpodEventDetail', {
        ...EVENT,
        reason: 'exit code 1',
        metadata
      })
    );
  }
}
