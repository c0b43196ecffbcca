import { nullTranslator } from '@jupyterlab/translation';

import { ApiError } from '../../api';
import { actInBatches, IProgress } from '../batches';
import { NodeAction } from '../types';
import { FakeNodeClient, problem } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');
const NODES = Array.from({ length: 60 }, (_, at) => `i-${at}`);

describe('actInBatches', () => {
  let client: FakeNodeClient;
  let told: IProgress[];

  beforeEach(() => {
    client = new FakeNodeClient();
    told = [];
  });

  function act(action: NodeAction = 'reboot', goesOn = () => true) {
    const tell = (progress: IProgress) => void told.push(progress);
    const order = { action, nodes: NODES };
    return actInBatches(client, 'ml-cluster', order, { tell, goesOn, trans });
  }

  function sizes(): number[] {
    return client.orders.map(([, order]) => order.nodes.length);
  }

  it('sends what AWS takes at once, and tells how far it is', async () => {
    const results = await act();
    expect(sizes()).toEqual([25, 25, 10]);
    expect(told.map(one => one.results.length)).toEqual([25, 50, 60]);
    expect(results.map(one => one.name)).toEqual(NODES);
    expect(results.every(one => one.error === null)).toBe(true);
  });

  it('asks the scheduler once', async () => {
    await act('resume');
    expect(sizes()).toEqual([60]);
  });

  it('goes on when one node of a batch is refused', async () => {
    client.errors['i-3'] = problem('node_busy', 'it is being rebooted');
    const results = await act();
    expect(sizes()).toEqual([25, 25, 10]);
    expect(results[3].error?.code).toBe('node_busy');
    expect(results[4].error).toBeNull();
  });

  it('sends no more once nothing of a batch is done', async () => {
    for (const name of NODES) {
      client.errors[name] = problem('missing_right', 'AWS does not let you');
    }
    const results = await act();
    expect(sizes()).toEqual([25]);
    expect(results.map(one => one.error?.code)).toEqual([
      ...Array.from({ length: 25 }, () => 'missing_right'),
      ...Array.from({ length: 35 }, () => 'not_sent')
    ]);
  });

  it('stops between two batches when the user wants it', async () => {
    const results = await act('replace', () => sizes().length < 2);
    expect(sizes()).toEqual([25, 25]);
    expect(results[49].error).toBeNull();
    expect(results[50].error?.message).toContain('stopped');
  });

  it('does not claim that nothing was done when no answer came', async () => {
    client.failure = ApiError.local('timeout', 'no answer in 30 s');
    const results = await act();
    expect(results[0].error?.message).toContain('is unknown');
    expect(results[59].error?.code).toBe('not_sent');
  });

  it('gives the server’s own words when it refuses', async () => {
    client.failure = ApiError.local('denied', 'Forbidden', 403);
    const results = await act();
    expect(results[0].error?.message).toBe('Forbidden');
  });
});
