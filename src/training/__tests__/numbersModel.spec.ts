import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { RunsModel } from '../../runs/model';
import { IRunNumbers } from '../client';
import { NumbersModel } from '../numbersModel';
import { hide } from './hide';

const STARTED = { started_at: '2026-01-01T00:00:00Z' };

function numbersOf(runId: string, since: string | null): IRunNumbers {
  return {
    run_id: runId,
    course_name: 'loss',
    course: [2, 1],
    summary: {
      metrics: { loss: { value: 1, step: 2, time: 3 } },
      progress: { step: 2, total: 4, seconds_left: 10 },
      alarms:
        since === null
          ? []
          : [{ code: 'nan', message: 'loss is nan', rank: 0, since }]
    }
  };
}

describe('the newest numbers', () => {
  let asked: (readonly string[])[];
  let since: string | null;
  let runs: RunsModel;
  let client: FakeRunClient;
  let model: NumbersModel;
  let alarms: string[];

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['performance', 'queueMicrotask'] });
    asked = [];
    alarms = [];
    since = null;
    client = new FakeRunClient();
    runs = new RunsModel({ client });
    const summaries = (ids: readonly string[]) => {
      asked.push(ids);
      return Promise.resolve(ids.map(id => numbersOf(id, since)));
    };
    model = new NumbersModel({ summaries }, runs);
    model.alarmRaised.connect((_, { alarm, run: { name } }) => {
      alarms.push(`${name} ${alarm.code}`);
    });
  });

  afterEach(() => {
    model.dispose();
    runs.dispose();
    jest.useRealTimers();
  });

  it('are asked for again while a run is active, and once after its end', async () => {
    client.runs = [run(1, { state: 'running', ...STARTED })];
    await runs.get(run(1).run_id);
    await jest.advanceTimersByTimeAsync(4500);
    expect(asked).toHaveLength(3);
    expect(model.of(run(1).run_id)?.course).toEqual([2, 1]);
    client.runs = [run(1, { state: 'succeeded', ...STARTED })];
    await runs.get(run(1).run_id);
    await jest.advanceTimersByTimeAsync(20_000);
    expect(asked).toHaveLength(4);
  });

  it('are not asked for of a run that has not started', async () => {
    client.runs = [run(1, { state: 'waiting', started_at: null })];
    await runs.get(run(1).run_id);
    await jest.advanceTimersByTimeAsync(5000);
    expect(asked).toEqual([]);
  });

  it('are not asked for while the tab is hidden, and at once when it is seen', async () => {
    client.runs = [run(1, { state: 'running', ...STARTED })];
    await runs.get(run(1).run_id);
    await jest.advanceTimersByTimeAsync(100);
    hide(true);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(1);
    hide(false);
    await jest.advanceTimersByTimeAsync(100);
    expect(asked).toHaveLength(2);
  });

  it('raise an alarm once', async () => {
    client.runs = [run(1, { state: 'running', ...STARTED })];
    await runs.get(run(1).run_id);
    await jest.advanceTimersByTimeAsync(100);
    since = '2026-01-01T00:01:00Z';
    await jest.advanceTimersByTimeAsync(10_000);
    expect(alarms).toEqual(['run 1 nan']);
  });
});
