import { nullTranslator } from '@jupyterlab/translation';
import { PartialJSONValue } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { RunsModel } from '../model';
import { runNames } from '../names';
import { IRunsActions, RunsPage } from '../runsPage';
import {
  FIRST_VIEW,
  gpuHoursOf,
  groupedRuns,
  IRunsView,
  keptView,
  metricNames,
  shownRuns,
  sortedBy,
  viewOf
} from '../runsView';
import { IRun } from '../types';
import { IViewStore, RunsViews } from '../views';
import { IRunNumbers } from '../../training/client';
import { NumbersModel } from '../../training/numbersModel';
import { FakeRunClient, run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

function namesOf(runs: readonly IRun[], view: Partial<IRunsView>): string[] {
  const names = runNames(runs);
  const shown = shownRuns(runs, names, { ...FIRST_VIEW, ...view });
  return shown.map(one => names.get(one.run_id) ?? '');
}

function numbers(
  runId: string,
  metrics: IRunNumbers['summary']['metrics']
): IRunNumbers {
  const summary = { metrics, progress: null, alarms: [] };
  return { run_id: runId, course_name: 'loss', course: [], summary };
}

describe('A view of runs', () => {
  const runs = [
    run(4, { state: 'failed', reason: 'out of memory', cluster: 'ml' }),
    run(3, { state: 'waiting', nodes: 4, processes_per_node: 1, queue: 'dev' }),
    run(2, { nodes: 2, processes_per_node: 8, name: 'run 10' }),
    run(1, {
      state: 'succeeded',
      started_at: '2026-01-01T00:00:00Z',
      ended_at: '2026-01-01T00:01:00Z'
    })
  ];

  it('filters by words, states and a cluster', () => {
    expect(namesOf(runs, { text: 'MEMORY ml' })).toEqual(['run 4']);
    expect(namesOf(runs, { states: ['waiting', 'succeeded'] })).toEqual([
      'run 3',
      'run 1'
    ]);
    expect(namesOf(runs, { cluster: 'ml' })).toEqual(['run 4']);
  });

  it('sorts: figures and times by the largest first, names as people count', () => {
    expect(sortedBy(FIRST_VIEW, 'size')).toMatchObject({ isFalling: true });
    const byName = sortedBy(FIRST_VIEW, 'name');
    expect(namesOf(runs, byName)).toEqual([
      'run 1',
      'run 3',
      'run 4',
      'run 10'
    ]);
    expect(namesOf(runs, sortedBy(byName, 'name'))[0]).toBe('run 10');
    expect(namesOf(runs, sortedBy(FIRST_VIEW, 'size')).slice(0, 2)).toEqual([
      'run 10',
      'run 3'
    ]);
  });

  it('counts the GPU-hours of all attempts, of none without GPUs', () => {
    const hour = (from: number, parts: object = {}) => ({
      number: from,
      started_at: `2026-01-01T0${from}:00:00Z`,
      ended_at: `2026-01-01T0${from + 1}:00:00Z`,
      ...parts
    });
    const of = (parts: object) => gpuHoursOf(run(1, { nodes: 2, ...parts }));
    const attempts = [
      hour(1, { nodes: ['a'] }),
      // Where it ran is not known.
      hour(2)
    ];
    expect(of({ gpus_per_node: 8, attempts })).toBe(8 + 16);
    expect(of({ gpus_per_node: 0, attempts })).toBeNull();
    expect(of({ gpus_per_node: 8 })).toBeNull();
    const began = new Date(Date.now() - 1_800_000).toISOString();
    const lost = { ...hour(1), ended_at: null };
    const now = { number: 2, started_at: began, ended_at: null };
    const running = { gpus_per_node: 2, attempts: [lost, now] };
    expect(of({ state: 'running', ...running })).toBeCloseTo(2, 2);
    expect(of({ state: 'unknown', ...running })).toBeNull();
  });

  it('has what has no value at the end, in both directions', () => {
    const falling = sortedBy(FIRST_VIEW, 'duration');
    expect(namesOf(runs, falling)[0]).toBe('run 1');
    expect(namesOf(runs, sortedBy(falling, 'duration'))[0]).toBe('run 1');
  });

  it('sorts by the newest number of a name; NaN and then runs without it are last', () => {
    const values: Readonly<Record<string, number | null>> = {
      'run 1': 0.5,
      'run 3': null,
      'run 4': 0.1
    };
    const numbersOf = (runId: string): IRunNumbers | undefined => {
      const name = runNames(runs).get(runId) ?? '';
      const value = values[name];
      const other = { value: 9, step: 1, time: 1 };
      return numbers(runId, {
        loss: other,
        ...(value !== undefined && { accuracy: { ...other, value } })
      });
    };
    const view = { ...sortedBy(FIRST_VIEW, 'numbers'), metric: 'accuracy' };
    const sorted = (isFalling: boolean) =>
      shownRuns(runs, runNames(runs), { ...view, isFalling }, numbersOf).map(
        one => one.name
      );
    expect(sorted(false)).toEqual(['run 4', 'run 1', 'run 3', 'run 10']);
    expect(sorted(true)).toEqual(['run 1', 'run 4', 'run 3', 'run 10']);
    expect(metricNames(runs, numbersOf)).toEqual(['loss', 'accuracy']);
    expect(viewOf({ ...keptView(view) }).metric).toBe('accuracy');
    expect(viewOf({ metric: 3 }).metric).toBeNull();
  });

  it('groups; what belongs to no group is last', () => {
    const some = [
      run(3),
      run(2, { notebook: 'b.ipynb' }),
      run(1, { notebook: 'a.ipynb' }),
      run(0, { notebook: 'b.ipynb' })
    ];
    const groups = groupedRuns(some, 'notebook', trans);
    expect(groups.map(({ label, runs: of }) => [label, of.length])).toEqual([
      ['b.ipynb', 2],
      ['a.ipynb', 1],
      ['No notebook', 1]
    ]);
    expect(groupedRuns(some, 'none', trans)).toEqual([
      { key: null, label: null, runs: some }
    ]);
  });

  it('is kept as JSON; what is unknown in it is as at first', () => {
    const view: IRunsView = {
      ...sortedBy(FIRST_VIEW, 'size'),
      states: ['failed'],
      group: 'name',
      columns: ['name', 'id']
    };
    expect(viewOf({ ...keptView(view) })).toEqual(view);
    expect(
      viewOf({ group: 'x', sort: 3, states: ['x'], columns: ['y', 'state'] })
    ).toEqual({ ...FIRST_VIEW, columns: ['state', 'name'] });
  });
});

/** A state database. */
class Store implements IViewStore {
  kept: PartialJSONValue | undefined = undefined;

  fetch(): Promise<PartialJSONValue | undefined> {
    return Promise.resolve(this.kept);
  }

  save(_: string, value: unknown): Promise<void> {
    this.kept = JSON.parse(JSON.stringify(value)) as PartialJSONValue;
    return Promise.resolve();
  }
}

describe('Saved views', () => {
  it('are there again after a reload, as is how the runs were shown last', async () => {
    const store = new Store();
    const views = new RunsViews(store);
    await views.load();
    views.show({ ...FIRST_VIEW, states: ['failed'] });
    views.save('Failures');
    views.show({ ...FIRST_VIEW, group: 'name' });
    const later = new RunsViews(store);
    await later.load();
    expect(later.view.group).toBe('name');
    expect([later.names, later.current]).toEqual([['Failures'], null]);
    later.open('Failures');
    expect(later.view.states).toEqual(['failed']);
    expect(later.current).toBe('Failures');
    later.remove('Failures');
    expect(later.names).toEqual([]);
  });

  it('are not kept where there is no store', async () => {
    const views = new RunsViews(null);
    await views.load();
    views.save('x');
    expect(views.names).toEqual(['x']);
  });
});

describe('The page of runs', () => {
  let page: RunsPage;
  let newest: NumbersModel;
  let summaries: readonly IRunNumbers[] = [];
  let client: FakeRunClient;
  let views: RunsViews;
  let done: string[];

  afterEach(() => {
    page.dispose();
    newest.dispose();
    summaries = [];
  });

  async function show(...runs: IRun[]): Promise<void> {
    client = new FakeRunClient();
    client.runs = runs;
    const model = new RunsModel({ client });
    done = [];
    const tell = (what: string) => void done.push(what);
    const actions: IRunsActions = {
      openRun: id => tell(`open ${id}`),
      cancel: some => tell(`cancel ${some.map(one => one.name).join(', ')}`),
      remove: some => tell(`delete ${some.map(one => one.name).join(', ')}`),
      runAgain: ({ name }) => tell(`again ${name}`),
      compare: some => tell(`compare ${some.map(one => one.name).join(', ')}`),
      copyId: ({ run_id }) => tell(`copy ${run_id}`),
      newRun: () => tell('new'),
      nameView: () => Promise.resolve('Mine')
    };
    views = new RunsViews(null);
    newest = new NumbersModel(
      { summaries: () => Promise.resolve(summaries) },
      model
    );
    page = new RunsPage({
      model,
      numbers: newest,
      views,
      actions,
      trans
    });
    Widget.attach(page, document.body);
    await until(() => model.loaded && !text().includes('Loading…'));
    await until(() => rows().length > 0 || runs.length === 0);
  }

  it('says that it was closed, so that it can be opened again', async () => {
    await show(run(1));
    let isDisposed = false;
    page.disposed.connect(() => {
      isDisposed = true;
    });
    page.dispose();
    expect(isDisposed).toBe(true);
  });

  const text = () => page.node.textContent ?? '';
  const rows = () => [
    ...page.node.querySelectorAll<HTMLElement>('.jp-HyperPod-RunsTable-name')
  ];
  const shown = () => rows().map(one => one.textContent);
  const button = (label: string) =>
    [...page.node.querySelectorAll('button')].find(
      one => one.textContent === label
    );
  const press = (key: string, keys: KeyboardEventInit = {}) =>
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', { key, bubbles: true, ...keys })
    );

  it('says that there are none', async () => {
    await show();
    await until(() => text().includes('No runs yet.'));
    button('New run')?.click();
    expect(done).toEqual(['new']);
  });

  it('reads as many as it has rows, and older ones when they are wanted', async () => {
    const many = Array.from({ length: 420 }, (_, n) =>
      run(n, {
        run_id: `run-${1000 - n}`,
        created_at: new Date(Date.UTC(2026, 0, 1) - n * 1000).toISOString()
      })
    );
    await show(...many);
    await until(() => rows().length === 200);
    expect(client.calls).toEqual(['list', 'list 50']);
    expect(text()).toContain('200 newest runs');
    button('Show older runs')?.click();
    await until(() => rows().length === 400);
    button('Show older runs')?.click();
    await until(() => rows().length === 420);
    expect(button('Show older runs')).toBeUndefined();
  });

  it('is sorted by the heads of its columns, and tells how', async () => {
    await show(run(3, { name: 'b' }), run(2, { name: 'a' }));
    expect(shown()).toEqual(['b', 'a']);
    button('Name')?.click();
    await until(() => shown()[0] === 'a');
    const head = button('Name')?.closest('th');
    expect(head?.getAttribute('aria-sort')).toBe('ascending');
  });

  it('goes by the keyboard: one stop, Space selects, Enter opens, Delete cancels', async () => {
    await show(run(3), run(2, { state: 'succeeded' }), run(1));
    const stops = rows().filter(one => one.tabIndex === 0);
    expect(stops.map(one => one.textContent)).toEqual(['run 3']);
    stops[0].focus();
    press(' ');
    await until(() => text().includes('1 selected'));
    press('ArrowDown');
    await until(() => document.activeElement?.textContent === 'run 2');
    press('ArrowDown');
    await until(() => document.activeElement?.textContent === 'run 1');
    press(' ');
    await until(() => text().includes('2 selected'));
    press('Delete');
    expect(done).toEqual(['cancel run 3, run 1']);
    press('Escape');
    await until(() => text().includes('3 runs'));
    press('/');
    expect(document.activeElement?.getAttribute('aria-label')).toBe(
      'Filter runs'
    );
  });

  it('selects a range with Shift, and acts on what can be acted on', async () => {
    await show(run(3), run(2, { state: 'succeeded' }), run(1));
    const boxes = [
      ...page.node.querySelectorAll<HTMLElement>('td input[type=checkbox]')
    ];
    boxes[0].click();
    await until(() => button('Run again') !== undefined);
    boxes[2].dispatchEvent(
      new MouseEvent('click', { bubbles: true, shiftKey: true })
    );
    await until(() => text().includes('3 selected'));
    expect(button('Run again')).toBeUndefined();
    button('Cancel 2')?.click();
    button('Delete 1')?.click();
    expect(done).toEqual(['cancel run 3, run 1', 'delete run 2']);
  });

  it('folds groups, and does nothing to what is folded', async () => {
    await show(run(3, { name: 'b' }), run(2, { name: 'a' }));
    views.show({ ...FIRST_VIEW, group: 'name' });
    await until(() => button('b1') !== undefined);
    page.node.querySelector<HTMLElement>('th input')?.click();
    await until(() => text().includes('2 selected'));
    button('b1')?.click();
    await until(() => shown().join() === 'a');
    expect(button('b1')?.getAttribute('aria-expanded')).toBe('false');
    expect(text()).toContain('1 selected');
  });

  it('leaves out columns that would be empty', async () => {
    await show(run(3));
    expect(button('Queue')).toBeUndefined();
    expect(button('Cluster')).toBeDefined();
  });

  it('shows the number that is chosen in the head of its column', async () => {
    const point = { step: 1, time: 1 };
    const first = run(3, { started_at: '2026-01-01T00:00:00Z' });
    summaries = [
      numbers(first.run_id, {
        loss: { value: 0.25, ...point },
        accuracy: { value: null, ...point }
      })
    ];
    await show(first, run(2));
    await until(() => text().includes('loss 0.25'));
    const choose = page.node.querySelector<HTMLElement>(
      '[aria-label="Choose the number to show"]'
    );
    choose?.focus();
    choose?.click();
    const entries = [
      ...document.querySelectorAll<HTMLElement>('.lm-Menu-item')
    ];
    expect(
      entries.map(one => one.textContent).filter(label => label !== '')
    ).toEqual(['Newest Number of Each Run', 'loss', 'accuracy']);
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', {
        key: 'Escape',
        keyCode: 27,
        bubbles: true
      })
    );
    views.show({ ...views.view, metric: 'accuracy' });
    await until(() => button('accuracy') !== undefined);
    const cell = page.node.querySelector('td[data-column="numbers"]');
    expect(cell?.textContent).toBe('NaN');
    button('accuracy')?.click();
    expect(views.view).toMatchObject({ sort: 'numbers', metric: 'accuracy' });
  });

  it('shows only runs of a state, and all again', async () => {
    await show(run(3), run(2, { state: 'failed' }));
    page.node
      .querySelector<HTMLElement>('[aria-label="Show only failed runs"]')
      ?.click();
    await until(() => shown().join() === 'run 2');
    button('Clear filters')?.click();
    await until(() => rows().length === 2);
  });
});
