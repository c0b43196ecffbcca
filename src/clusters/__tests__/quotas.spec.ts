import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import { shareText } from '../bar';
import { quotaText } from '../quotas';
import { queueColumns } from '../queueColumns';
import { IQuota, quotasOf } from '../types';

const trans = nullTranslator.load('hyperpod_jlab');
const GIB = 1024 ** 3;

const GPU: IQuota = {
  flavor: 'p5',
  resource: 'nvidia.com/gpu',
  nominal: 16,
  used: 12,
  borrowed: 0,
  free: 4,
  most: 16
};

describe('A quota in words', () => {
  it('says what is used, and what is free', () => {
    expect(quotaText(GPU, false, trans)).toBe(
      'nvidia.com/gpu: 12 of 16 in use; 4 free'
    );
  });

  it('says what is borrowed and what others would lend', () => {
    const lent = { ...GPU, used: 20, borrowed: 4, free: 2, most: 24 };
    expect(quotaText(lent, true, trans)).toBe(
      'nvidia.com/gpu (p5): 20 of 16 in use; 4 of it borrowed; 2 free; at most 24 with borrowing'
    );
  });

  it('counts memory in GiB', () => {
    const memory = { ...GPU, resource: 'memory', nominal: 64 * GIB };
    const one = { ...memory, used: 1.5 * GIB, free: 62.5 * GIB, most: 0 };
    expect(quotaText(one, false, trans)).toBe(
      'memory: 1.5 GiB of 64 GiB in use; 62.5 GiB free'
    );
  });
});

describe('A bar', () => {
  it.each([
    [1, 4, '25%'],
    [0, 4, '0%'],
    [5, 4, '100%'],
    [1, 0, '100%'],
    [1, 3, '33.3%']
  ])('for %d of %d is %s wide', (amount, total, width) => {
    expect(shareText(amount, total)).toBe(width);
  });
});

describe('A queue that has quota', () => {
  const queue = { name: 'q', state: 'up', resources: [], quotas: [GPU] };
  const row = answerOf('Queue', { ...queue, cluster_queue: 'team-a' });

  it('has it in its row', () => {
    expect(quotasOf(row.quotas)).toEqual([GPU]);
  });

  it('has no words on nodes, time limits and who may use it', () => {
    const shown = queueColumns(trans)
      .filter(({ name, render }) => render && name !== 'state')
      .filter(({ render }) => render?.(row));
    expect(shown.map(column => column.name)).toEqual(['name', 'quotas']);
  });
});
