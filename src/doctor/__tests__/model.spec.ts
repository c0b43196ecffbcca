import { Event } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { IAsked, IDoctorClient, IReport } from '../client';
import { DOCTOR_EVENT, DoctorModel } from '../model';
import { IExamination } from '../types';

const ALL: IAsked = { cluster: null, job: false };

/** An examination, as the server sends it. */
function examination(
  version: number,
  state: string,
  more: object = {}
): Record<string, unknown> {
  return {
    number: state === 'none' ? 0 : 1,
    version,
    state,
    cluster: null,
    job: false,
    begun_at: '2026-11-22T17:00:00Z',
    ended_at: null,
    step: null,
    checks: [],
    problem: null,
    ...more
  };
}

class FakeClient implements IDoctorClient {
  readonly asked: string[] = [];
  answer: unknown = examination(0, 'none');
  failure: Error | null = null;

  read(): Promise<IExamination> {
    return this._answer('read');
  }

  begin({ cluster, job }: IAsked): Promise<IExamination> {
    return this._answer(`begin ${cluster} ${job}`);
  }

  cancel(): Promise<IExamination> {
    return this._answer('cancel');
  }

  report(): Promise<IReport> {
    return Promise.resolve({ name: 'report.md', text: '# Report' });
  }

  private _answer(asked: string): Promise<IExamination> {
    this.asked.push(asked);
    return this.failure
      ? Promise.reject(this.failure)
      : Promise.resolve(answerOf('DoctorExamination', this.answer));
  }
}

describe('DoctorModel', () => {
  const bus = {};
  let client: FakeClient;
  let events: Signal<object, Event.Emission>;
  let model: DoctorModel;

  beforeEach(() => {
    client = new FakeClient();
    events = new Signal<object, Event.Emission>(bus);
    model = new DoctorModel(client, events, 20);
  });

  afterEach(() => model.dispose());

  function tell(): void {
    events.emit({ schema_id: DOCTOR_EVENT, number: 1 });
  }

  it('reads when an event says so, and only while somebody looks', async () => {
    tell();
    model.start();
    await until(() => model.value !== null);
    expect(client.asked).toEqual(['read']);
    client.answer = examination(7, 'done');
    tell();
    await until(() => model.value?.version === 7);
    model.stop();
    tell();
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(client.asked).toEqual(['read', 'read']);
  });

  it('reads now and then while one goes on, should an event be lost', async () => {
    client.answer = examination(1, 'running');
    model.start();
    await until(() => client.asked.length >= 3);
    client.answer = examination(9, 'done');
    await until(() => model.value?.state === 'done');
    const reads = client.asked.length;
    await new Promise(resolve => setTimeout(resolve, 60));
    expect(client.asked).toHaveLength(reads);
  });

  it('begins the first one by itself, and no second one', async () => {
    client.answer = examination(3, 'done');
    await model.beginFirst(ALL);
    expect(client.asked).toEqual(['read']);
    const other = new DoctorModel(client, events);
    client.answer = examination(0, 'none');
    await other.beginFirst(ALL);
    expect(client.asked.pop()).toBe('begin null false');
    other.dispose();
  });

  it('takes no answer that is older than what it has', async () => {
    client.answer = examination(5, 'running');
    await model.begin(ALL);
    client.answer = examination(4, 'running');
    model.refresh();
    await until(() => client.asked.length === 2);
    expect(model.value?.version).toBe(5);
    const restarted = { begun_at: '2026-11-22T18:00:00Z' };
    client.answer = examination(1, 'running', restarted);
    await model.begin({ cluster: 'train', job: true });
    expect(model.value?.version).toBe(1);
    expect(client.asked.pop()).toBe('begin train true');
  });

  it('keeps what it read when the server does not answer', async () => {
    client.answer = examination(5, 'done');
    await model.begin(ALL);
    client.failure = new Error('gone');
    await model.cancel();
    expect(model.error?.message).toContain('gone');
    expect(model.value?.version).toBe(5);
  });
});
