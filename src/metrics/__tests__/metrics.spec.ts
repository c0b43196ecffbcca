import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { IMetrics, IMetricsClient, ISubject } from '../client';
import { MetricsPage } from '../page';
import { unbroken } from '../sparkline';
import { valueText } from '../words';

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
  it('shows each metric with its chart, which has a gap where nothing was measured', async () => {
    const { page } = pageOf(() => Promise.resolve(answer()));
    await until(() => page.node.querySelector('svg') !== null);
    const cells = [...page.node.querySelectorAll('tbody tr > *')];
    expect(cells.map(cell => cell.textContent)).toEqual([
      'GPU utilisation',
      '',
      '50 %',
      '30 %',
      '0 %',
      '100 %'
    ]);
    const chart = page.node.querySelector('svg');
    expect(chart?.getAttribute('aria-label')).toBe(
      'GPU utilisation: from 0 % to 100 %, now 50 %'
    );
    const lines = [...page.node.querySelectorAll('polyline')];
    expect(lines.map(line => line.getAttribute('points'))).toEqual([
      '0,31 24,31 24,1 48,1',
      '216,16 240,16'
    ]);
    page.dispose();
  });

  it('asks anew for another time', async () => {
    const { page, asked } = pageOf(() => Promise.resolve(answer()));
    await until(() => page.node.querySelector('svg') !== null);
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
    expect(page.node.querySelector('table')).toBeNull();
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

describe('The parts of a chart', () => {
  it('are divided where periods have no value', () => {
    const points = [0, 60, 180, 240].map(time => ({
      time: new Date(time).toISOString(),
      value: 1
    }));
    expect(unbroken(points, 60).map(part => part.map(p => p.time))).toEqual([
      [0, 60],
      [180, 240]
    ]);
    expect(unbroken([], 60)).toEqual([]);
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
