import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { IRunMetrics } from '../client';
import { MetricsTab } from '../metricsTab';

/* jsdom cannot draw. */
jest.mock('../../charts/plot', () => ({
  drawPlot: () => ({
    setChart: jest.fn(),
    focus: jest.fn(),
    destroy: jest.fn()
  })
}));

const trans = nullTranslator.load('hyperpod_jlab');
const HOUR = 3_600_000;

/** What was measured on nodes up to so many milliseconds ago. */
function answer(ago: number, nodes: Record<string, number>): IRunMetrics {
  const end = Date.now() - ago;
  const times = {
    begin: new Date(end - HOUR).toISOString(),
    end: new Date(end).toISOString()
  };
  const measured = (node: string | null, value: number) => ({
    cluster: 'ml',
    node,
    source: 'Prometheus',
    ...times,
    period_s: 60,
    metrics: [
      {
        name: 'gpu-utilization',
        unit: 'percent',
        meaning: '',
        last: value,
        mean: value,
        lowest: value,
        highest: value,
        points: [{ time: times.begin, value }]
      }
    ],
    missing: [],
    notes: ['a note']
  });
  return answerOf('RunMetrics', {
    run_id: 'r',
    whole: measured(null, 50),
    nodes: Object.entries(nodes).map(([name, value]) => measured(name, value))
  });
}

describe('The metrics of a run', () => {
  let tab: MetricsTab;
  let asked: string[];

  function show(answers: () => Promise<IRunMetrics>, hidden = false): void {
    asked = [];
    const client = {
      metrics: (runId: string) => {
        asked.push(runId);
        return answers();
      }
    };
    tab = new MetricsTab(client, 'run-1', trans);
    tab.setHidden(hidden);
    Widget.attach(tab, document.body);
  }

  /** Hidden and shown again, with time for a request. */
  async function again(): Promise<void> {
    tab.hide();
    tab.show();
    await new Promise(resolve => setTimeout(resolve, 50));
  }

  afterEach(() => tab.dispose());

  it('are asked for when they are seen, and then again while the run continues', async () => {
    show(() => Promise.resolve(answer(0, { a: 50 })), true);
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(asked).toEqual([]);
    tab.show();
    await until(() => tab.node.querySelector('figure') !== null);
    expect(asked).toEqual(['run-1']);
    await again();
    expect(asked.length).toBe(2);
  });

  it('of a run that is long over are asked for once', async () => {
    show(() => Promise.resolve(answer(HOUR, { a: 50 })));
    await until(() => tab.node.querySelector('figure') !== null);
    await again();
    expect(asked.length).toBe(1);
  });

  it('are the mean over its nodes, or of the one that is chosen', async () => {
    show(() => Promise.resolve(answer(0, { a: 20, b: 80 })));
    const last = () => tab.node.querySelector('dd');
    await until(() => last() !== null);
    expect(last()?.textContent).toBe('50 %');
    const select = tab.node.querySelector('select');
    const options = [...(select?.options ?? [])].map(one => one.textContent);
    expect(options).toEqual(['Mean of 2 nodes', 'a', 'b']);
    if (select) {
      select.value = 'b';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    }
    await until(() => last()?.textContent === '80 %');
    const words = tab.node.textContent;
    expect(words).toContain('Source: Amazon Managed Service for Prometheus');
    expect(words).toContain('a note');
  });

  it('are none, and that is said, where there can be none', async () => {
    const none = ApiError.local('unsupported', 'ran on this machine', 422);
    show(() => Promise.reject(none));
    await until(() => tab.node.textContent === 'ran on this machine');
    expect(tab.node.querySelector('[role="alert"]')).toBeNull();
    await again();
    expect(asked.length).toBe(1);
  });

  it('can be asked for again when that failed', async () => {
    let fails = true;
    const broken = ApiError.local('aws_failed', 'not now', 502);
    show(() =>
      fails ? Promise.reject(broken) : Promise.resolve(answer(0, { a: 1 }))
    );
    await until(() => tab.node.querySelector('[role="alert"]') !== null);
    expect(tab.node.textContent).toContain('not now');
    fails = false;
    tab.node.querySelector<HTMLElement>('button')?.click();
    await until(() => tab.node.querySelector('figure') !== null);
    expect(tab.node.querySelector('[role="alert"]')).toBeNull();
  });
});
