import { nullTranslator } from '@jupyterlab/translation';

import {
  axisOf,
  courseOf,
  namesOf,
  rankChart,
  smoothed,
  valueText
} from '../curveData';
import { grown, ISeries } from '../seriesModel';

const trans = nullTranslator.load('');

function series(
  name: string,
  points: ISeries['points'],
  rank = 0,
  attempt = 1
): ISeries {
  return { name, rank, attempt, points };
}

describe('curves of what ranks print', () => {
  it('have the most important names first, and no epoch', () => {
    const names = ['wer', 'epoch', 'learning_rate', 'loss'];
    expect(namesOf(names.map(name => series(name, [])))).toEqual([
      'loss',
      'learning_rate',
      'wer'
    ]);
  });

  it('say NaN of what is not finite', () => {
    const view = { x: 'step', isLog: false, smoothing: 0 } as const;
    const shown = (points: ISeries['points']) =>
      rankChart('loss', [series('loss', points)], view, trans).curves[0];
    const mixed = shown([
      [1, 10, 3],
      [2, 11, null],
      [3, 12, 1]
    ]);
    expect(mixed).toMatchObject({ last: '1', peak: '1 – 3' });
    expect([...(mixed.broken ?? [])]).toEqual([1]);
    expect(shown([[1, 10, null]])).toMatchObject({ last: 'NaN', peak: 'NaN' });
  });

  it('go over steps where there are any', () => {
    expect(axisOf([series('loss', [[null, 1, 2]])])).toBe('time');
    expect(axisOf([series('loss', [[3, 1, 2]])])).toBe('step');
  });

  it('take the later attempt where steps repeat, with a mark', () => {
    const first = series('loss', [
      [1, 10, 3],
      [2, 11, 2],
      [3, 12, 1]
    ]);
    const second = series(
      'loss',
      [
        [2, 20, 2.5],
        [3, 21, 1.5]
      ],
      0,
      2
    );
    const course = courseOf([second, first], 'step', 'a');
    expect(course.points).toEqual([
      [1, 3],
      [2, 2.5],
      [3, 1.5]
    ]);
    expect(course.marks).toEqual([2]);
  });

  it('are a band where there are many ranks', () => {
    const many = Array.from({ length: 12 }, (_, rank) =>
      series('loss', [[1, 1, rank]], rank)
    );
    const view = { x: 'step', isLog: false, smoothing: 0 } as const;
    const chart = rankChart('loss', many, view, trans);
    expect(chart.curves.map(one => one.label)).toEqual(['Rank 0']);
    expect(chart.band).toEqual({ low: [0], high: [11] });
    const few = rankChart('loss', many.slice(0, 3), view, trans);
    expect(few.curves).toHaveLength(3);
    expect(few.band).toBeNull();
  });

  it('name the ranks that stand out of a band', () => {
    const points = (last: number | null, steps = 20): ISeries['points'] =>
      Array.from({ length: steps }, (_, at) => [
        at + 1,
        at,
        at === steps - 1 ? last : 3
      ]);
    const many = Array.from({ length: 64 }, (_, rank) =>
      series('loss', points(2 + (rank % 7) / 100), rank)
    );
    many[5] = series('loss', points(9), 5);
    many[40] = series('loss', points(2, 11), 40);
    many[63] = series('loss', points(null), 63);
    const view = { x: 'step', isLog: false, smoothing: 0 } as const;
    const labels = rankChart('loss', many, view, trans).curves.map(
      one => one.label
    );
    expect(labels).toEqual(['Rank 0', 'Rank 63', 'Rank 5', 'Rank 40']);
  });

  it('show a value that is not finite as a gap, and say so', () => {
    const view = { x: 'step', isLog: false, smoothing: 0.5 } as const;
    const chart = rankChart(
      'loss',
      [
        series('loss', [
          [1, 1, 2],
          [2, 2, null]
        ])
      ],
      view,
      trans
    );
    expect(chart.curves[0].values).toEqual([2, null]);
    expect(chart.curves[0].last).toBe('NaN');
  });

  it('are smoothed without a pull to zero', () => {
    expect(
      smoothed(
        [
          [1, 4],
          [2, 4]
        ],
        0.9
      )
    ).toEqual([
      [1, expect.closeTo(4)],
      [2, expect.closeTo(4)]
    ]);
  });

  it('grow by what came since', () => {
    const before = [series('loss', [[1, 1, 1]])];
    const added = [series('loss', [[2, 2, 2]]), series('acc', [[2, 2, 3]])];
    expect(grown(before, added).map(one => one.points.length)).toEqual([2, 1]);
  });

  it.each([
    [0, '0'],
    [0.00012, '1.2e-4'],
    [12345.678, '12350'],
    [2.5e7, '2.5e7'],
    [0.5, '0.5']
  ])('say %d as %s', (value, text) => {
    expect(valueText(value)).toBe(text);
  });
});
