import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import type { ActionKind } from '../../actions/kinds';
import { FakeClient } from '../../logs/__tests__/fakeClient';
import { IRunActions } from '../header';
import { RunsModel } from '../model';
import { RunPage } from '../page';
import { NumbersModel } from '../../training/numbersModel';
import { FakeRunClient, noTraining, run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

const ELAPSED = '.jp-HyperPod-Elapsed';
const SHELLS = '.jp-HyperPod-Shells';

// The test's browser has no layout to watch.
window.ResizeObserver = class {
  observe(): void {
    return;
  }
  unobserve(): void {
    return;
  }
  disconnect(): void {
    return;
  }
};

describe('RunPage', () => {
  const client = new FakeRunClient();
  let runs: RunsModel;
  let numbers: NumbersModel;
  let acts: string[];
  let able: readonly ActionKind[] = ['cancel'];
  let hasShells = false;
  let page: RunPage;
  let logClient: FakeClient;

  async function show(runId: string, clone = true): Promise<void> {
    acts = [];
    runs = new RunsModel({ client });
    const actions: IRunActions = {
      act: (one, action) => acts.push(`${action} ${one.name}`),
      able: () => Promise.resolve(able),
      clone: clone ? one => acts.push(`clone ${one.name}`) : null,
      delete: one => acts.push(`delete ${one.name}`),
      copyCommand: one => acts.push(`copy ${one.name}`),
      copyShell: command => acts.push(`shell ${command}`),
      hasShells: () => Promise.resolve(hasShells),
      openUsage: cluster => acts.push(`usage of ${cluster}`),
      openMlflow: () => acts.push('mlflow'),
      openRun: runId => acts.push(`open ${runId}`),
      openPlace: (_, place) => acts.push(`line ${place.line}`),
      openExecuted: one => acts.push(`executed ${one.name}`),
      openSource: one => acts.push(`source ${one.name}`),
      runNow: clone ? one => acts.push(`now ${one.name}`) : null,
      switchTo: (_, change) => {
        acts.push(`switch ${change.text}`);
        return Promise.resolve();
      }
    };
    logClient = new FakeClient(10);
    const runClient = client;
    numbers = new NumbersModel(noTraining, runs);
    page = new RunPage({
      runId,
      runs,
      runClient,
      logClient,
      training: noTraining,
      numbers,
      actions,
      trans
    });
    Widget.attach(page, document.body);
    await until(() => page.node.querySelector('h1, [role="alert"]') !== null);
  }

  function buttons(): string[] {
    const found = page.node.querySelectorAll(
      '.jp-HyperPod-RunHeader-buttons button'
    );
    return Array.from(found).map(item => item.textContent ?? '');
  }

  /** What the menu of further actions offers. */
  function inMenu(): string[] {
    const button = page.node.querySelector<HTMLElement>(
      '[aria-label="More actions"]'
    );
    button?.click();
    const items = document.querySelectorAll('.lm-Menu-itemLabel');
    const texts = Array.from(items).map(item => item.textContent ?? '');
    document.querySelectorAll('.lm-Menu').forEach(menu => menu.remove());
    return texts;
  }

  async function showTab(label: string): Promise<void> {
    const tab = () =>
      [...page.node.querySelectorAll<HTMLElement>('[role="tab"]')].find(
        one => one.textContent === label
      );
    await until(() => tab() !== undefined);
    tab()?.click();
  }

  afterEach(() => {
    page.dispose();
    numbers.dispose();
    runs.dispose();
  });

  it('has buttons that fit the state', async () => {
    client.runs = [run(1)];
    await show(run(1).run_id);
    expect(buttons()).toEqual(['Cancel', 'Run again…', '⋯']);
    page.node.querySelector<HTMLElement>('.jp-mod-warn')?.click();
    expect(acts).toEqual(['cancel run 1']);
    client.runs = [run(1, { state: 'succeeded', exit_code: 0 })];
    await runs.get(run(1).run_id);
    await until(() => buttons().length === 2);
    expect(buttons()).toEqual(['Run again…', '⋯']);
    expect(page.title.label).toBe('run 1');
  });

  it('offers what the cluster can do and fits the state', async () => {
    able = ['cancel', 'hold', 'release', 'requeue', 'change'];
    client.runs = [run(1)];
    await show(run(1).run_id, false);
    await until(() => buttons().length === 2);
    expect(buttons()).toEqual(['Cancel', '⋯']);
    await until(() => inMenu().length === 3);
    expect(inMenu()).toEqual(['Requeue', 'Change…', 'Copy command']);
    client.runs = [run(1, { state: 'waiting' })];
    await runs.get(run(1).run_id);
    await until(() => buttons()[1] === 'Hold');
    client.runs = [run(1, { state: 'waiting', reason_code: 'held' })];
    await runs.get(run(1).run_id);
    await until(() => buttons()[1] === 'Release');
    expect(inMenu()).toEqual(['Change…', 'Copy command']);
    able = ['cancel'];
  });

  it('names the user of another user’s run, and offers only what that one may do', async () => {
    able = ['cancel', 'hold', 'release', 'requeue', 'change'];
    hasShells = true;
    client.runs = [run(1, { user: 'bob', own: true })];
    await show(run(1).run_id);
    await until(() => inMenu().length === 3);
    const title = () =>
      page.node.querySelector('.jp-HyperPod-RunHeader-facts')?.textContent;
    await showTab('Overview');
    await until(() => page.node.querySelector(SHELLS) !== null);
    expect(title()).not.toContain('bob');
    client.runs = [run(1, { user: 'bob', own: false })];
    await runs.get(run(1).run_id);
    await until(() => inMenu().length === 1);
    expect(buttons()).toEqual(['Run again…', '⋯']);
    await until(() => page.node.querySelector(SHELLS) === null);
    expect(title()).toContain('bob');
    able = ['cancel'];
    hasShells = false;
  });

  it('shows which kind of object the run became, where there is one', async () => {
    const facts = () =>
      Array.from(page.node.querySelectorAll('.jp-HyperPod-facts div')).map(
        fact => fact.textContent
      );
    client.runs = [run(1, { kind: 'PyTorchJob' })];
    await show(run(1).run_id);
    await showTab('Overview');
    await until(() => facts().includes('KindPyTorchJob'));
    client.runs = [run(1, { kind: null, state: 'succeeded' })];
    await runs.get(run(1).run_id);
    await until(() => buttons().length === 2);
    expect(facts().some(fact => fact?.startsWith('Kind'))).toBe(false);
  });

  it('shows the log of what runs, and the overview of what waits or failed', async () => {
    const shown = () =>
      page.node.querySelector('[aria-selected="true"]')?.textContent;
    client.runs = [run(1)];
    await show(run(1).run_id);
    await until(() => shown() === 'Log');
    client.runs = [run(1, { state: 'failed' })];
    await runs.get(run(1).run_id);
    await until(() => (page.node.textContent ?? '').includes('Failed'));
    expect(shown()).toBe('Log');
    page.dispose();
    runs.dispose();
    await show(run(1).run_id);
    await until(() => shown() === 'Overview');
    page.dispose();
    runs.dispose();
    client.runs = [run(1, { state: 'waiting' })];
    await show(run(1).run_id);
    await until(() => shown() === 'Overview');
    client.runs = [run(1)];
    await runs.get(run(1).run_id);
    await until(() => shown() === 'Log');
  });

  it('changes no tab that the user has chosen', async () => {
    client.runs = [run(1, { state: 'waiting' })];
    await show(run(1).run_id);
    await showTab('Settings');
    client.runs = [run(1)];
    await runs.get(run(1).run_id);
    await until(
      () => page.node.querySelector('[data-state="running"]') !== null
    );
    expect(page.node.querySelector('[aria-selected="true"]')?.textContent).toBe(
      'Settings'
    );
  });

  it('asks for nothing that nobody looks at', async () => {
    client.calls.length = 0;
    client.runs = [run(1)];
    await show(run(1).run_id);
    await until(() => client.calls.length > 1);
    const kinds = new Set(client.calls.map(call => call.split(' ')[0]));
    expect([...kinds].sort()).toEqual(['get', 'overview']);
  });

  it('shows the time against its limit', async () => {
    const startedAt = new Date(Date.now() - 60_000).toISOString();
    client.runs = [run(1, { started_at: startedAt })];
    client.glance = answerOf('RunOverview', { time_limit: 1800 });
    await show(run(1).run_id);
    await until(() => page.node.querySelector('progress') !== null);
    expect(page.node.querySelector('progress')?.max).toBe(1800);
    expect(page.node.textContent).toContain('/ 30:00');
    client.glance = answerOf('RunOverview');
  });

  it('offers nothing that is not there', async () => {
    client.runs = [run(1)];
    await show(run(1).run_id, false);
    expect(buttons()).toEqual(['Cancel', '⋯']);
  });

  it('names the rank that failed first, and shows its log', async () => {
    const error = { rank: 3, type: 'ValueError', message: 'NaN' };
    const attempt = { number: 1, state: 'failed', first_error: error };
    client.runs = [run(1, { state: 'failed', attempts: [attempt] })];
    await show(run(1).run_id);
    const card = page.node.querySelector('.jp-HyperPod-Failure');
    expect(card?.textContent).toContain('ValueError: NaN');
    expect(card?.textContent).toContain('Rank 3 failed first');
    card?.querySelector('button')?.click();
    expect(page.log.model.ranks).toBe('3');
  });

  it('goes on in the same log though the run was requeued before its end was told', async () => {
    client.runs = [run(1)];
    await show(run(1).run_id);
    await until(() => logClient.follows.length === 1);
    const attempts = [1, 2].map(number => ({ number, state: 'running' }));
    client.runs = [run(1, { attempts })];
    logClient.handler?.end();
    await until(() => logClient.follows.length === 2);
    expect(logClient.follows[1].cursor).toBe('10');
    expect(page.log.model.feed.over).toBe(false);
  });

  it('asks no more when run and log are not of one mind', async () => {
    client.runs = [run(1)];
    await show(run(1).run_id);
    await until(() => logClient.follows.length === 1);
    logClient.handler?.end();
    await until(() => logClient.follows.length === 2);
    const asked = client.calls.length;
    logClient.handler?.end();
    await until(() => client.calls.length > asked);
    await runs.get(run(1).run_id);
    expect(logClient.follows).toHaveLength(2);
    client.runs = [run(1, { state: 'failed' })];
    await runs.get(run(1).run_id);
    client.runs = [run(1)];
    await runs.get(run(1).run_id);
    expect(logClient.follows).toHaveLength(3);
  });

  it('says of a run that is gone only that', async () => {
    client.runs = [];
    await show('nobody');
    expect(page.node.querySelector('[role="alert"]')?.textContent).toContain(
      'no run nobody'
    );
    expect(page.log.isVisible).toBe(false);
  });

  it('lists the children of an array, failed ones first', async () => {
    const children = { succeeded: 1, failed: 1 };
    client.runs = [run(1, { children })];
    const child = (index: number, state: string) =>
      run(1, { run_id: `${run(1).run_id}.${index}`, state });
    client.family = [child(0, 'succeeded'), child(1, 'failed')];
    await show(run(1).run_id);
    await showTab('Overview');
    await until(() => page.node.querySelector('details') !== null);
    const details = page.node.querySelector('details');
    expect(details?.textContent).toContain('Array: 1 failed, 1 succeeded');
    const links = () => [...(details?.querySelectorAll('button') ?? [])];
    await until(() => links().length === 2);
    expect(links().map(link => link.textContent)).toEqual(['1', '0']);
    links()[0].click();
    expect(acts).toEqual([`open ${run(1).run_id}.1`]);
    client.runs = [run(1, { children, reason: 'it takes its time' })];
    await runs.get(run(1).run_id);
    await until(() => (page.node.textContent ?? '').includes('its time'));
    const reads = client.calls.filter(call => call.startsWith('children'));
    expect(reads).toHaveLength(1);
    client.family = [child(0, 'succeeded'), child(1, 'succeeded')];
    client.runs = [run(1, { state: 'succeeded', children: { succeeded: 2 } })];
    await runs.get(run(1).run_id);
    await until(() => links()[0].textContent === '0');
    expect(details?.textContent).toContain('Array: 2 succeeded');
  });

  it('says of a run that was removed only that', async () => {
    const startedAt = '2026-01-01T00:00:00.000Z';
    client.runs = [run(1, { started_at: startedAt })];
    await show(run(1).run_id);
    const text = () => page.node.textContent ?? '';
    expect(page.node.querySelector(ELAPSED)).not.toBeNull();
    client.runs = [];
    await runs.act(run(1).run_id, 'cancel').catch(() => undefined);
    await until(() => text().includes('This run was removed.'));
    expect(buttons()).toEqual([]);
    expect(page.node.querySelector(ELAPSED)).toBeNull();
    await until(() => text().includes('Its log is no longer available'));
    client.runs = [run(1)];
    await runs.get(run(1).run_id);
    await until(() => buttons().length === 3);
    expect(page.log.model.removed).toBe(false);
  });
});
