import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { OverviewModel } from '../overviewModel';
import { RunPageModel } from '../pageModel';
import { RankStrip } from '../rankStrip';
import { RunsModel } from '../model';
import { FakeRunClient, noTraining, run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

describe('OverviewModel', () => {
  let client: FakeRunClient;
  let runs: RunsModel;
  let page: RunPageModel;
  let model: OverviewModel;
  const reads = () =>
    client.calls.filter(call => call.startsWith('resources')).length;

  beforeEach(() => {
    client = new FakeRunClient();
    client.runs = [run(1, { state: 'succeeded' })];
    runs = new RunsModel({ client });
    page = new RunPageModel(runs, run(1).run_id);
    const logs = { streams: () => Promise.resolve([]) };
    model = new OverviewModel(page, client, logs, noTraining);
  });

  afterEach(() => {
    model.dispose();
    page.dispose();
    runs.dispose();
  });

  it('reads nothing before it is seen', async () => {
    await page.load();
    expect(reads()).toBe(0);
  });

  it('reads a run that has ended once', async () => {
    await page.load();
    model.start();
    await until(() => model.value !== null);
    model.stop();
    model.start();
    await page.load();
    expect(reads()).toBe(1);
  });

  it('reads what a run costs once it has started', async () => {
    const costs = () => client.calls.filter(call => call.startsWith('cost'));
    client.runs = [run(1, { state: 'waiting' })];
    await page.load();
    model.start();
    await until(() => model.value !== null);
    expect(costs()).toEqual([]);
    const started_at = '2026-01-01T00:00:00Z';
    client.runs = [run(1, { state: 'running', started_at })];
    await page.load();
    await until(() => model.cost.value !== null);
    expect(costs()).toHaveLength(1);
  });

  it('reads again when the run goes on', async () => {
    await page.load();
    model.start();
    await until(() => model.value !== null);
    client.runs = [run(1, { state: 'failed', attempts: [{ number: 1 }] })];
    await page.load();
    await until(() => reads() === 2);
  });

  it('reads another node', async () => {
    await page.load();
    model.start();
    await until(() => model.value !== null);
    model.node = 3;
    await until(() => client.calls.includes(`resources ${page.runId} 3`));
  });
});

describe('RankStrip', () => {
  let widget: Widget;
  let shown: number[];
  let lines: number[];

  async function show(states: readonly string[]): Promise<void> {
    shown = [];
    lines = [];
    const ranks = states.map((state, rank) =>
      answerOf('RankStatus', { rank, node_rank: 0, node: 'n', state })
    );
    const stream = { rank: 1, node_rank: 0, size: 5, silent: true };
    const streams = [
      answerOf('AttemptStreams', { number: 1, streams: [stream] })
    ];
    const props = {
      ranks,
      streams,
      resources: null,
      trans,
      showRank: (rank: number) => void shown.push(rank),
      loadLine: (rank: number) => {
        lines.push(rank);
        return Promise.resolve(`line of ${rank}`);
      }
    };
    widget = ReactWidget.create(React.createElement(RankStrip, props));
    Widget.attach(widget, document.body);
    await until(() => cells().length === states.length);
  }

  function cells(): HTMLElement[] {
    return [...widget.node.querySelectorAll('button')];
  }

  afterEach(() => widget.dispose());

  it('has a cell for each rank, and one stop for the keyboard', async () => {
    await show(['running', 'running', 'running']);
    expect(cells().map(cell => cell.tabIndex)).toEqual([0, -1, -1]);
    expect(cells()[1].getAttribute('aria-label')).toBe('Rank 1: silent');
    expect(widget.node.textContent).toContain('1 silent, 2 running');
  });

  it('says how the rank is that is reached, with its last line', async () => {
    await show(['running', 'running']);
    cells()[0].focus();
    const right = { key: 'ArrowRight', bubbles: true };
    cells()[0].dispatchEvent(new KeyboardEvent('keydown', right));
    await until(() => widget.node.textContent?.includes('line of 1') ?? false);
    expect(widget.node.textContent).toContain('Rank 1 on n · silent');
    expect(document.activeElement).toBe(cells()[1]);
    expect(lines).toEqual([1]);
    cells()[1].click();
    expect(shown).toEqual([1]);
  });

  it('begins with the rank that failed', async () => {
    await show(['stopped', 'stopped', 'failed']);
    expect(cells()[2].tabIndex).toBe(0);
    expect(widget.node.textContent).toContain('Rank 2 on n · failed');
    expect(lines).toEqual([]);
  });
});
