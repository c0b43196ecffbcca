import { Event } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { until } from '../../__tests__/until';
import { AWS_CALLS_EVENT, AwsCallsModel } from '../awsCalls';

const ASKED = {
  calls: 3,
  total: 9,
  operations: [
    { service: 'sagemaker', operation: 'DescribeCluster', calls: 2 },
    { service: 'sagemaker', operation: 'ListClusters', calls: 1 }
  ]
};
const QUIET = { calls: 0, total: 9, operations: [] };

describe('AwsCallsModel', () => {
  const bus = {};
  let answers: unknown[];
  let reads: number;
  let events: Signal<object, Event.Emission>;
  let model: AwsCallsModel;

  function make(silence?: number): AwsCallsModel {
    return new AwsCallsModel(
      {
        get: <T>() => {
          reads += 1;
          return answers.length === 0
            ? Promise.reject(new Error('away'))
            : Promise.resolve(answers.shift() as T);
        }
      },
      events,
      silence
    );
  }

  function tell(data: object, schema = AWS_CALLS_EVENT): void {
    events.emit({ ...data, schema_id: schema });
  }

  beforeEach(() => {
    answers = [];
    reads = 0;
    events = new Signal<object, Event.Emission>(bus);
  });

  afterEach(() => model.dispose());

  it('reads once, then has what the events tell', async () => {
    model = make();
    answers = [ASKED];
    await model.read();
    expect(model.value).toEqual(ASKED);
    tell({ ...ASKED, calls: 4, total: 10 });
    expect(model.value.calls).toBe(4);
    tell({ calls: 77 }, 'https://elsewhere.example/event');
    expect(model.value.calls).toBe(4);
    tell(QUIET);
    expect(model.value).toEqual(QUIET);
    expect(reads).toBe(1);
  });

  it('keeps an event that came while it read', async () => {
    model = make();
    answers = [QUIET];
    const reading = model.read();
    tell(ASKED);
    await reading;
    expect(model.value).toEqual(ASKED);
  });

  it('shows no call of a server that went away', async () => {
    model = make(20);
    tell(ASKED);
    await until(() => model.value.calls === 0);
    expect(model.value.total).toBe(9);
    expect(reads).toBe(1);
  });
});
