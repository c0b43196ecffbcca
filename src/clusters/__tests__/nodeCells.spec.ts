import { answerOf } from '../../__tests__/answers';
import { cellAt, cellsOf, cornerOf, IJob, layoutOf } from '../nodeCells';

const NODE = {
  name: 'n1',
  state: 'up',
  usable: true,
  gpus: 4,
  used: 3,
  shares: [
    { job: '7', gpus: 1 },
    { job: '8', gpus: 1 }
  ]
};

function jobs(): Map<string, IJob> {
  const mine = answerOf('Job', { scheduler_id: '7', mine: true });
  const other = answerOf('Job', { scheduler_id: '8', mine: false });
  return new Map([
    ['7', mine],
    ['8', other]
  ]);
}

describe('cellsOf', () => {
  it('draws the GPUs of each job, those of unknown jobs, and the free ones', () => {
    expect(cellsOf(answerOf('NodeTile', NODE), jobs())).toEqual([
      { use: 'mine', job: '7' },
      { use: 'other', job: '8' },
      { use: 'other', job: null },
      { use: 'free', job: null }
    ]);
  });

  it.each([
    ['drained', 'drained'],
    ['down', 'failed'],
    ['maintenance', 'drained']
  ])('draws no free GPU on a node that is %s', (state, use) => {
    const node = { ...NODE, state, usable: false, used: 0, shares: [] };
    const uses = cellsOf(answerOf('NodeTile', node), jobs()).map(
      cell => cell.use
    );
    expect(uses).toEqual([use, use, use, use]);
  });

  it('draws a node without GPUs as one cell', () => {
    const idle = { ...NODE, gpus: 0, used: 0, shares: [] };
    const busy = { ...idle, shares: [{ job: '7', gpus: 0 }] };
    expect(cellsOf(answerOf('NodeTile', idle), jobs())).toEqual([
      { use: 'free', job: null }
    ]);
    expect(cellsOf(answerOf('NodeTile', busy), jobs())).toEqual([
      { use: 'mine', job: '7' }
    ]);
  });
});

describe('layoutOf', () => {
  it('finds each cell where it is drawn', () => {
    for (const count of [3, 250]) {
      const layout = layoutOf(count, 8, 900, 60);
      for (const node of [0, 1, count - 1]) {
        const [x, y] = cornerOf(layout, node);
        const third =
          x + layout.labelWidth + 2 * (layout.cell + layout.cellGap);
        expect(cellAt(layout, count, third, y)).toEqual({ node, cell: 2 });
        expect(x + layout.blockWidth).toBeLessThanOrEqual(layout.width);
        expect(y + layout.blockHeight).toBeLessThanOrEqual(layout.height);
      }
    }
  });

  it('has names below 100 nodes, and a dense map from there on', () => {
    const named = layoutOf(99, 8, 900, 60);
    expect(named.labelWidth).toBeGreaterThan(0);
    expect(cellAt(named, 99, 5, 5)).toEqual({ node: 0, cell: -1 });
    expect(layoutOf(100, 8, 900, 60).labelWidth).toBe(0);
  });

  it('finds nothing between the blocks and behind the last node', () => {
    const layout = layoutOf(3, 8, 10_000, 60);
    expect(cellAt(layout, 3, layout.blockWidth + 1, 1)).toBeNull();
    expect(cellAt(layout, 3, layout.width + 20, 1)).toBeNull();
    expect(cellAt(layout, 3, 1, layout.height + 50)).toBeNull();
    expect(cellAt(layout, 3, -1, 1)).toBeNull();
  });

  it('fits 2,000 nodes into a page', () => {
    const layout = layoutOf(2000, 8, 1000, 60);
    expect(layout.width).toBeLessThanOrEqual(1000);
    expect(layout.height).toBeLessThan(1500);
  });
});
