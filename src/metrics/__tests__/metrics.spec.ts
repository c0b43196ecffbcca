import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { metricCharts } from '../chartData';
import { IMetrics, IMetricsClient, ISubject } from '../client';
import { MetricsPage } from '../page';
import { valueText } from '../words';

/* jsdom cannot draw. */
jest.mock('../../charts/plot', () => ({
  drawPlot: () => ({
    setChart: jest.fn(),
    focus: jest.fn(),
    destroy: jest.fn()
  })
}));

const trans = nullTranslator.load('hyperpod_jlab');

const BEGIN = '2026-11-22T12:00:00.000Z';

function answer(more: object = {}): IMetrics {
  return answerOf('HyperpodMetrics', {
    cluster: 'ml',
    node: null,
    source: 'CloudWatch',
    begin: BEGIN,
    end: '2026-11-22T12:10:00.000Z',
    period_s: 60,
    metrics: [
      {
        name: 'gpu-utilization',
        unit: 'percent',
        meaning: '',
        last: 50,
        mean: 30,
        lowest: 0,
        highest: 100,
        points: [
          { time: BEGIN, value: 0 },
          { time: '2026-11-22T12:01:00.000Z', value: 100 },
          { time: '2026-11-22T12:09:00.000Z', value: 50 }
        ]
      }
    ],
    missing: [],
    notes: [],
    ...more
  });
}

/** A page, and what it asked for. */
function pageOf(answers: (subject: ISubject) => Promise<IMetrics>): {
  page: MetricsPage;
  asked: ISubject[];
} {
  const asked: ISubject[] = [];
  const client: IMetricsClient = {
    metrics: subject => {
      asked.push(subject);
      return answers(subject);
    }
  };
  const page = new MetricsPage({ cluster: 'ml', node: null, client, trans });
  Widget.attach(page, document.body);
  return { page, asked };
}

describe('The page of metrics', () => {
  it('shows a chart of each metric with its figures', async () => {
    const { page } = pageOf(() => Promise.resolve(answer()));
    await until(() => page.node.querySelector('dl') !== null);
    expect(page.node.querySelector('figcaption')?.textContent).toBe(
      'GPU utilisation'
    );
    expect(page.node.querySelector('dl')?.textContent).toBe(
      'Latest50 %Mean30 %Min.0 %Max.100 %'
    );
    const chart = page.node.querySelector('[role=img]');
    expect(chart?.getAttribute('aria-label')).toBe(
      'GPU utilisation. Latest 50 %, Mean 30 %, Min. 0 %, Max. 100 %'
    );
    page.dispose();
  });

  it('asks anew for another time', async () => {
    const { page, asked } = pageOf(() => Promise.resolve(answer()));
    await until(() => page.node.querySelector('figure') !== null);
    const select = page.node.querySelector('select');
    if (select === null) {
      throw new Error('there is no choice of times');
    }
    select.value = String(24 * 3600);
    select.dispatchEvent(new Event('change', { bubbles: true }));
    await until(() => asked.length === 2);
    expect(asked.map(one => one.seconds)).toEqual([3600, 86400]);
    page.dispose();
  });

  it('says what is missing, and what went wrong', async () => {
    const notes = ['install the add-on'];
    let wrong = false;
    const { page } = pageOf(() =>
      wrong
        ? Promise.reject(new Error('denied'))
        : Promise.resolve(answer({ metrics: [], notes }))
    );
    await until(() => page.node.textContent?.includes(notes[0]) ?? false);
    expect(page.node.querySelector('figure')).toBeNull();
    expect(page.node.textContent).toContain('No measurements in this time.');
    wrong = true;
    const select = page.node.querySelector('select');
    select?.dispatchEvent(new Event('change', { bubbles: true }));
    await until(() => page.node.querySelector('[role=alert]') !== null);
    expect(page.node.textContent).toContain('does not respond');
    // What was read before stays.
    expect(page.node.textContent).toContain(notes[0]);
    page.dispose();
  });

  it('asks for nothing while it is hidden', async () => {
    const { page, asked } = pageOf(() => Promise.resolve(answer()));
    await until(() => asked.length === 1);
    page.hide();
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(asked).toHaveLength(1);
    page.show();
    await until(() => asked.length === 2);
    page.dispose();
  });
});

describe('The chart of a metric', () => {
  it('covers the whole time, with gaps where nothing was measured', () => {
    const [chart] = metricCharts(answer(), trans);
    const begin = Date.parse(BEGIN) / 1000;
    expect(chart.times).toHaveLength(10);
    expect([chart.times[0], chart.times[9]]).toEqual([begin, begin + 540]);
    const gap = Array.from({ length: 7 }, () => null);
    expect(chart.curves[0].values).toEqual([0, 100, ...gap, 50]);
    expect([chart.top, chart.limit]).toEqual([100, null]);
  });

  it('has a limit only for what can be full', () => {
    const [{ points, ...metric }] = answer().metrics;
    const names = ['gpu-memory', 'gpu-temperature', 'cpu', 'memory'];
    const metrics = names.map(name => ({ ...metric, name, points }));
    expect(
      metricCharts(answer({ metrics }), trans).map(one => one.limit)
    ).toEqual([100, null, null, 100]);
  });

  it('has bytes in one unit', () => {
    const [metric] = answer().metrics;
    const metrics = [{ ...metric, unit: 'bytes/s', highest: 3 * 1024 ** 3 }];
    const [chart] = metricCharts(answer({ metrics }), trans);
    expect(chart.text(2)).toBe('2 GiB/s');
    expect(chart.curves[0].values[1]).toBe(100 / 1024 ** 3);
  });
});

describe('A value', () => {
  it.each([
    [12.345, 'percent', '12.3 %'],
    [1536, 'bytes/s', '1.5 KiB/s'],
    [8 * 1024 ** 3, 'bytes/s', '8 GiB/s'],
    [43.6, 'celsius', '43.6 °C'],
    [3, 'count', '3'],
    [0.25, 'packets/s', '0.25 /s']
  ])('has its unit: %p %p', (value, unit, text) => {
    expect(valueText(value, unit)).toBe(text);
  });
});
