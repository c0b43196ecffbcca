import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError, Schema } from '../../api';
import { saveText } from '../../components/saveText';
import { firstMeasure, keyTexts, measuresOf, usageChart } from '../chartData';
import { IUsageReport } from '../client';
import { csvName, csvOf } from '../csv';
import { UsagePage } from '../page';
import { By, UsageModel } from '../usageModel';

/* jsdom cannot draw. */
jest.mock('../../charts/plot', () => ({
  drawPlot: () => ({
    setChart: jest.fn(),
    focus: jest.fn(),
    destroy: jest.fn()
  })
}));

jest.mock('../../components/saveText', () => ({ saveText: jest.fn() }));

const trans = nullTranslator.load('hyperpod_jlab');

function row(key: string, gpuHours: number, amount: number | null): object {
  const hours = { node_hours: gpuHours / 8 + 1, gpu_hours: gpuHours };
  return { key, runs: 2, ...hours, amount };
}

function day(date: string, key: string, gpuHours: number): object {
  const hours = { node_hours: gpuHours / 8 + 1, gpu_hours: gpuHours };
  return { day: date, key, ...hours, amount: gpuHours * 2 };
}

function report(parts: object = {}): IUsageReport {
  return answerOf('UsageReport', {
    by: 'user',
    begin: '2026-10-30T00:00:00.000Z',
    end: '2026-11-01T09:00:00.000Z',
    currency: 'USD',
    rows: [row('ana', 16, 32), row('bob', 24, 48)],
    days: [
      day('2026-10-30', 'ana', 8),
      day('2026-10-30', 'bob', 24),
      day('2026-11-01', 'ana', 8)
    ],
    ...parts
  });
}

describe('The bars of usage', () => {
  it('have a place for each day of the period, the largest key at the bottom', () => {
    const chart = usageChart(report(), 'gpu_hours', trans);
    const [first] = chart.times;
    expect(chart.times.map(one => one - first)).toEqual([0, 1, 2]);
    expect(chart.times.map(one => chart.xText?.(one))).toEqual([
      'Oct 30',
      'Oct 31',
      'Nov 1'
    ]);
    expect(chart.curves.map(({ label, values }) => [label, values])).toEqual([
      ['ana', [8, 0, 8]],
      ['bob', [24, 0, 0]]
    ]);
  });

  it('end with the day before where a period ends at midnight', () => {
    const end = '2026-11-01T00:00:00.000Z';
    expect(usageChart(report({ end }), 'amount', trans).times).toHaveLength(2);
  });

  it('have eight colours; of more keys the smallest are together', () => {
    const keys = [...'abcdefghij'];
    const of = (count: number) =>
      usageChart(
        report({
          rows: keys.slice(0, count).map((key, at) => row(key, 100 - at, null)),
          days: keys
            .slice(0, count)
            .map((key, at) => day('2026-10-31', key, 100 - at))
        }),
        'gpu_hours',
        trans
      );
    expect(of(8).curves.map(one => one.label)).toEqual([...'hgfedcba']);
    const many = of(10).curves;
    expect(many.map(one => one.label)).toEqual(['3 others', ...'gfedcba']);
    expect(many[0].values).toEqual([0, 93 + 92 + 91, 0]);
    expect(new Set(many.map(one => one.colour)).size).toBe(8);
  });

  it('have the names of notebooks, and the paths of those with the same name', () => {
    const keys = [
      '/work/a/train.ipynb',
      '/work/b/train.ipynb',
      '/work/x.ipynb'
    ];
    const rows = [...keys, '(none)'].map(key => row(key, 1, null));
    const texts = keyTexts(report({ by: 'notebook', rows }));
    expect([...texts.values()]).toEqual([
      ...keys.slice(0, 2),
      'x.ipynb',
      '(none)'
    ]);
  });

  it('show what there is: GPU-hours first, money where a price is known', () => {
    const all = measuresOf(report());
    expect(all).toEqual(['node_hours', 'gpu_hours', 'amount']);
    expect(firstMeasure(all)).toBe('gpu_hours');
    const some = measuresOf(report({ rows: [row('ana', 0, null)] }));
    expect(some).toEqual(['node_hours']);
    expect(firstMeasure(some)).toBe('node_hours');
  });
});

describe('The CSV of usage', () => {
  it('has the columns of the command, and quotes', () => {
    const days = [
      day('2026-10-30', 'a "b", c', 1 / 3),
      { ...day('2026-10-31', 'ana', 8), amount: null },
      day('2026-10-31', '=1+1', 8)
    ];
    expect(csvOf(report({ days }))).toBe(
      'day,user,node_hours,gpu_hours,amount_usd\n' +
        '2026-10-30,"a ""b"", c",1.041667,0.333333,0.666667\n' +
        '2026-10-31,ana,2.000000,8.000000,\n' +
        "2026-10-31,'=1+1,2.000000,8.000000,16.000000\n"
    );
    const keys = [
      '\t=1',
      '\r=1',
      '\ta',
      '\x1b=1',
      ' =1',
      '＝1',
      'a\x1b[2J\u202eb'
    ];
    const hostile = keys.map(key => day('2026-10-31', key, 8));
    const cells = csvOf(report({ days: hostile }))
      .split('\n')
      .slice(1, -1)
      .map(line => line.split(',')[1]);
    expect(cells).toEqual(["'=1", "'=1", "'a", "'=1", "' =1", "'＝1", 'a[2Jb']);
    expect(csvName(report())).toBe(
      'usage-by-user-2026-10-30-to-2026-11-01.csv'
    );
  });
});

function idleRow(type: string, paid: number, used: number) {
  return {
    instance_type: type,
    paid_hours: paid,
    used_hours: used,
    idle_hours: paid - used,
    price: 100,
    amount: (paid - used) * 100
  };
}

describe('The page of usage', () => {
  let asked: Schema<'UsageQuery'>[];
  let answer: () => Promise<IUsageReport>;
  let page: UsagePage;

  function open(): void {
    page = new UsagePage({
      client: {
        usage: query => {
          asked.push(query);
          return answer();
        }
      },
      clusters: () => Promise.resolve(['local', 'ml']),
      trans
    });
    Widget.attach(page, document.body);
  }

  function text(): string {
    return page.node.textContent ?? '';
  }

  function choose(label: string, value: string): void {
    const select = [...page.node.querySelectorAll('label')]
      .find(one => one.textContent?.startsWith(label))
      ?.querySelector('select');
    if (!select) {
      throw new Error(`there is no ${label}`);
    }
    select.value = value;
    select.dispatchEvent(new Event('change', { bubbles: true }));
  }

  function press(label: string): void {
    const all = [...page.node.querySelectorAll('button')];
    const found = all.find(one => one.textContent === label);
    if (!found) {
      throw new Error(`there is no button ${label}`);
    }
    found.click();
  }

  function cells(selector: string): (string | null)[][] {
    return [...page.node.querySelectorAll(`table ${selector} tr`)].map(one =>
      [...one.children].map(cell => cell.textContent)
    );
  }

  beforeEach(() => {
    asked = [];
    answer = () => Promise.resolve(report());
  });

  afterEach(() => {
    page.dispose();
    jest.mocked(saveText).mockClear();
  });

  it('shows each key with its share, the largest first, and the total', async () => {
    open();
    await until(() => page.node.querySelector('table') !== null);
    expect(cells('tbody')).toEqual([
      ['bob', '2', '4', '24', '$48.00', '60 %'],
      ['ana', '2', '3', '16', '$32.00', '40 %']
    ]);
    expect(cells('tfoot')).toEqual([['Total', '4', '7', '40', '$80.00', '']]);
    expect(page.node.querySelector('[role=img]')).not.toBeNull();
  });

  it('changes the measure without a request, and asks for another key, time and cluster', async () => {
    open();
    await until(() => page.node.querySelector('table') !== null);
    press('Cost');
    await until(() => text().includes('Share of Cost'));
    expect(text()).toContain('Cost per day');
    expect(asked).toHaveLength(1);
    choose('By', 'queue');
    choose('Time', '7');
    await until(() => page.node.querySelector('option[value=ml]') !== null);
    choose('Cluster', 'ml');
    await until(() => asked[asked.length - 1].cluster?.[0] === 'ml');
    const { begin, by } = asked[asked.length - 1];
    expect(by).toBe('queue');
    await until(() => page.node.querySelector('[aria-busy=true]') === null);
    // Today and the six days before, from midnight of UTC on.
    const past = Date.now() - Date.parse(begin);
    expect(begin).toContain('T00:00:00.000Z');
    expect(past).toBeGreaterThan(6 * 86_400_000 - 1);
    expect(past).toBeLessThan(7 * 86_400_000 + 60_000);
  });

  it('does not show sums of money as whole where a price is not known', async () => {
    answer = () =>
      Promise.resolve(
        report({ rows: [row('ana', 0, 5), row('bob', 0, null)] })
      );
    open();
    await until(() => page.node.querySelector('table') !== null);
    expect(cells('tfoot')[0]).toEqual([
      'Total',
      '4',
      '2',
      'at least $5.00',
      ''
    ]);
    expect(cells('thead')[0]).not.toContain('GPU-hours');
  });

  it('saves the days as a file', async () => {
    open();
    await until(() => page.node.querySelector('table') !== null);
    press('Export CSV');
    expect(saveText).toHaveBeenCalledWith(
      'usage-by-user-2026-10-30-to-2026-11-01.csv',
      csvOf(report()),
      'text/csv'
    );
  });

  it('says what to do where nothing ran, and what is not counted', async () => {
    const notes = ['local has no accounting'];
    answer = () => Promise.resolve(report({ rows: [], days: [], notes }));
    open();
    await until(() => text().includes('No job ran in this time.'));
    expect(text()).toContain('local has no accounting');
    expect(page.node.querySelector('table')).toBeNull();
  });

  it('shows nodes that no job had', async () => {
    const idle = [{ ...idleRow('ml.p5.48xlarge', 100, 60), cluster: 'ml' }];
    answer = () => Promise.resolve(report({ idle }));
    open();
    await until(() => text().includes('Idle nodes'));
    expect(text()).toContain('ml.p5.48xlarge');
    expect(text()).toContain('$4,000.00');
  });

  it('links to the bill of AWS of the clusters that have one', async () => {
    const url = 'https://console.aws.amazon.com/costmanagement/home#/x';
    answer = () => Promise.resolve(report({ bills: [{ cluster: 'ml', url }] }));
    open();
    await until(() => text().includes('AWS bill of ml in Cost Explorer'));
    expect(page.node.querySelector('a')?.href).toBe(url);
  });

  it('says why there is no report of what was chosen, not that of another choice', async () => {
    open();
    await until(() => page.node.querySelector('table') !== null);
    answer = () =>
      Promise.reject(ApiError.local('unreachable', 'ml does not answer', 502));
    await until(() => page.node.querySelector('option[value=ml]') !== null);
    choose('Cluster', 'ml');
    await until(() => text().includes('ml does not answer'));
    expect(page.node.querySelector('table')).toBeNull();
    answer = () => Promise.resolve(report());
    press('Try again');
    await until(() => page.node.querySelector('table') !== null);
    expect(text()).not.toContain('ml does not answer');
  });
});

describe('The model of usage', () => {
  it('counts what was chosen last, however fast the choices come', async () => {
    const asked: string[] = [];
    const answers: (() => void)[] = [];
    const model = new UsageModel({
      usage: ({ by }) => {
        asked.push(by ?? '');
        return new Promise(resolve =>
          answers.push(() => resolve(report({ by })))
        );
      }
    });
    model.start();
    await until(() => answers.length === 1);
    answers[0]();
    await until(() => !model.isBusy);
    model.choose({ by: 'queue' });
    await until(() => answers.length === 2);
    model.choose({ by: 'account' });
    model.choose({ by: 'cluster' });
    answers[1]();
    await until(() => answers.length === 3);
    answers[2]();
    await until(() => !model.isBusy);
    expect(model.report?.by).toBe('cluster');
    expect(asked).toEqual(['user', 'queue', 'cluster']);
    model.dispose();
  });

  it('counts again when it is shown again after a choice that failed', async () => {
    const asked: string[] = [];
    const model = new UsageModel({
      usage: ({ by = '' }) => {
        asked.push(by);
        return asked.length === 2
          ? Promise.reject(ApiError.local('network', 'no answer'))
          : Promise.resolve(report({ by: by as By }));
      }
    });
    model.start();
    await until(() => model.report !== null);
    model.choose({ by: 'account' });
    await until(() => model.error !== null);
    model.stop();
    model.start();
    await until(() => model.report?.by === 'account');
    model.dispose();
  });

  it('does not count again when it is soon shown again', async () => {
    const asked: string[] = [];
    const model = new UsageModel({
      usage: ({ by = '' }) => {
        asked.push(by);
        return Promise.resolve(report());
      }
    });
    let answers = 0;
    model.changed.connect(() => answers++);
    model.start();
    await until(() => answers === 1);
    model.stop();
    model.start();
    await until(() => answers === 2);
    expect(asked).toEqual(['user']);
    model.choose({ by: 'account' });
    await until(() => asked.length === 2);
    await until(() => !model.isBusy);
    model.refresh();
    await until(() => asked.length === 3);
    model.dispose();
  });
});
