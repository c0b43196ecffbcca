import { answerOf } from '../../__tests__/answers';
import { Availability } from '../availability';
import { gpuSteps } from '../stepper';
import { FRESH_MS, queueOf, startOf } from '../starting';

function queue(parts: object = {}) {
  return answerOf('Queue', {
    name: 'dev',
    state: 'up',
    default: true,
    nodes: 4,
    nodes_free: 2,
    slots: null,
    slots_free: null,
    accelerators: 32,
    accelerators_free: 20,
    quotas: [],
    waiting: 0,
    ...parts
  });
}

function overview(parts: object = {}) {
  const nodes = [8, 4, 0, 0].map(used => ({ usable: true, gpus: 8, used }));
  return answerOf('ClusterOverview', { nodes, queues: [queue()], ...parts });
}

describe('whether a run would start', () => {
  it.each([
    [{ nodes: 2, gpus: 8 }, 'now'],
    [{ nodes: 1, gpus: 4 }, 'now'],
    // 20 GPUs are free, but only two nodes have 8 of them.
    [{ nodes: 3, gpus: 8 }, 'waits'],
    [{ nodes: 2, gpus: 0 }, 'now'],
    [{ nodes: 3, gpus: 0 }, 'unknown']
  ])('%j: %s', (size, kind) => {
    const told = overview();
    const start = startOf(told, queueOf(told, ''), { ranks: 1, ...size });
    expect(start.kind).toBe(kind);
  });

  it('is not promised where others wait, or the queue starts nothing', () => {
    const size = { nodes: 1, gpus: 1, ranks: 1 };
    const kindOf = (parts: object) =>
      startOf(overview(), queue(parts), size).kind;
    expect(kindOf({ waiting: 2 })).toBe('behind');
    expect(kindOf({ state: 'down' })).toBe('closed');
    expect(kindOf({ slots: 4, slots_free: 0 })).toBe('waits');
  });
});

describe('what is free', () => {
  const made: Availability[] = [];

  function reading(read: () => Promise<ReturnType<typeof overview>>) {
    const free = new Availability({ overview: read });
    made.push(free);
    return free;
  }

  afterEach(() => {
    jest.restoreAllMocks();
    made.splice(0).forEach(one => one.dispose());
  });

  it('is asked anew only when it is old', async () => {
    let asked = 0;
    const free = reading(() => {
      asked++;
      return Promise.resolve(overview({ as_of: new Date().toISOString() }));
    });
    await free.renew('ml', false);
    await free.renew('ml', false);
    expect(asked).toBe(1);
    expect(free.age('ml')).toBeLessThan(FRESH_MS);
    const later = Date.now() + 2 * FRESH_MS;
    jest.spyOn(Date, 'now').mockReturnValue(later);
    expect(free.age('ml')).toBeGreaterThan(FRESH_MS);
    await free.renew('ml', false);
    expect(asked).toBe(2);
  });

  it('is as old as the scheduler’s answer', async () => {
    const told = new Date(Date.now() - 60_000).toISOString();
    const free = reading(() => Promise.resolve(overview({ as_of: told })));
    await free.renew('ml', false);
    expect(free.age('ml')).toBeGreaterThanOrEqual(60_000);
  });

  it('is nothing where a cluster does not answer', async () => {
    const free = reading(() => Promise.reject(new Error('gone')));
    await free.renew('ml', false);
    expect(free.of('ml')).toBeNull();
  });
});

describe('steps of GPUs', () => {
  it('double up to a whole node', () => {
    const next = gpuSteps(8);
    expect(next(0, 1)).toBe(1);
    expect(next(4, 1)).toBe(8);
    expect(next(8, 1)).toBeNull();
    expect(next(8, -1)).toBe(4);
    expect(next(0, -1)).toBeNull();
    expect(gpuSteps(6)(4, 1)).toBe(6);
  });
});
