import { TranslationBundle } from '@jupyterlab/translation';
import { ReadonlyJSONObject } from '@lumino/coreutils';

import { filterRuns, FILTERS } from './filter';
import type { IRunNumbers } from '../training/client';
import { namesOf } from '../training/curveData';
import { newestValue } from '../training/words';
import { IRun } from './types';
import { secondsBetween } from './words';

/** The columns of the table of runs, as they stand. */
export const COLUMNS = [
  'state',
  'name',
  'cluster',
  'queue',
  'size',
  'duration',
  'gpuHours',
  'started',
  'submitted',
  'notebook',
  'id',
  'numbers',
  'reason'
] as const;

export type RunColumn = (typeof COLUMNS)[number];

/** What the table can be grouped by. */
export const GROUPINGS = ['none', 'notebook', 'name', 'array'] as const;

export type RunGrouping = (typeof GROUPINGS)[number];

/**
 * What of the runs is shown, and how.
 */
export interface IRunsView {
  readonly text: string;
  /** Keys of `FILTERS`; none: all states. */
  readonly states: readonly string[];
  readonly cluster: string | null;
  readonly group: RunGrouping;
  readonly sort: RunColumn;
  readonly isFalling: boolean;
  readonly columns: readonly RunColumn[];
  /** The name of the numbers that are shown and sorted by; null: of each run the most important one. */
  readonly metric: string | null;
}

export const FIRST_VIEW: IRunsView = {
  text: '',
  states: [],
  cluster: null,
  group: 'none',
  sort: 'submitted',
  isFalling: true,
  columns: [
    'state',
    'name',
    'cluster',
    'queue',
    'size',
    'duration',
    'started',
    'numbers',
    'reason'
  ],
  metric: null
};

/**
 * Runs under one head; without a head where they are not grouped.
 */
export interface IRunGroup {
  /** Null for those that belong to no group. */
  readonly key: string | null;
  readonly label: string | null;
  readonly runs: readonly IRun[];
}

/** A view that was kept; what another version wrote and this one does not know is as at first. */
export function viewOf(kept: Readonly<Record<string, unknown>>): IRunsView {
  const first = FIRST_VIEW;
  const { cluster, columns, group, isFalling, metric, sort, states, text } =
    kept;
  const chosen = Array.isArray(columns)
    ? COLUMNS.filter(name => name === 'name' || columns.includes(name))
    : first.columns;
  return {
    text: typeof text === 'string' ? text : first.text,
    states: Array.isArray(states)
      ? Object.keys(FILTERS).filter(state => states.includes(state))
      : first.states,
    cluster: typeof cluster === 'string' ? cluster : first.cluster,
    group: GROUPINGS.find(one => one === group) ?? first.group,
    sort: COLUMNS.find(one => one === sort) ?? first.sort,
    isFalling: typeof isFalling === 'boolean' ? isFalling : first.isFalling,
    columns: chosen,
    metric: typeof metric === 'string' ? metric : first.metric
  };
}

/** A view as it is kept. */
export function keptView(view: IRunsView): ReadonlyJSONObject {
  return {
    ...view,
    states: [...view.states],
    columns: [...view.columns]
  };
}

/** Whether a view leaves runs out. */
export function isFiltered({ cluster, states, text }: IRunsView): boolean {
  return text.trim() !== '' || states.length > 0 || cluster !== null;
}

/** The next order when a column's head is clicked: what is largest or newest comes first in columns of figures and times. */
export function sortedBy(view: IRunsView, column: RunColumn): IRunsView {
  return view.sort === column
    ? { ...view, isFalling: !view.isFalling }
    : { ...view, sort: column, isFalling: FALLING_FIRST.has(column) };
}

const FALLING_FIRST: ReadonlySet<RunColumn> = new Set([
  'size',
  'duration',
  'gpuHours',
  'started',
  'submitted'
]);

/** The runs that a view shows, in its order. */
export function shownRuns(
  runs: readonly IRun[],
  names: ReadonlyMap<string, string>,
  view: IRunsView,
  numbersOf: (runId: string) => IRunNumbers | undefined = () => undefined
): readonly IRun[] {
  const { cluster, isFalling, metric, states, text } = view;
  const found = filterRuns(runs, names, { text, states: new Set(states) });
  const sign = isFalling ? -1 : 1;
  return found
    .filter(run => cluster === null || run.cluster === cluster)
    .map(run => ({
      run,
      value:
        view.sort === 'numbers'
          ? metricValue(numbersOf(run.run_id), metric)
          : sortValue(run, names, view.sort)
    }))
    .sort(({ value: one }, { value: other }) => {
      // What has no value comes last in both directions, after what is not finite.
      const [first, second] = [placeOf(one), placeOf(other)];
      return one === null || other === null || first !== second || first > 0
        ? first - second
        : sign * compare(one, other);
    })
    .map(({ run }) => run);
}

/** The names of numbers that runs have, the most important first. */
export function metricNames(
  runs: readonly IRun[],
  numbersOf: (runId: string) => IRunNumbers | undefined
): readonly string[] {
  const names = runs.flatMap(run =>
    Object.keys(numbersOf(run.run_id)?.summary.metrics ?? {})
  );
  return namesOf(names.map(name => ({ name })));
}

/** The newest value of a name, or of the most important one; NaN where it is not finite, null for none. */
function metricValue(
  numbers: IRunNumbers | undefined,
  metric: string | null
): number | null {
  const name = metric ?? numbers?.course_name ?? null;
  return numbers === undefined || name === null
    ? null
    : newestValue(numbers, name);
}

function placeOf(value: string | number | null): number {
  return value === null ? 2 : Number.isNaN(value) ? 1 : 0;
}

function compare(one: string | number, other: string | number): number {
  return typeof one === 'string' || typeof other === 'string'
    ? String(one).localeCompare(String(other), undefined, { numeric: true })
    : one - other;
}

/** The states in the order of how much they ask to be looked at. */
const STATES = [
  'running',
  'submitting',
  'waiting',
  'failed',
  'unknown',
  'cancelled',
  'succeeded'
];

/** What a column is sorted by; null for nothing. */
function sortValue(
  run: IRun,
  names: ReadonlyMap<string, string>,
  column: Exclude<RunColumn, 'numbers'>
): string | number | null {
  switch (column) {
    case 'state':
      return STATES.indexOf(run.state);
    case 'name':
      return names.get(run.run_id) ?? run.name;
    case 'size':
      return run.nodes * (run.gpus_per_node || run.processes_per_node);
    case 'duration':
      return secondsOf(run);
    case 'gpuHours':
      return gpuHoursOf(run);
    case 'started':
      return run.started_at && Date.parse(run.started_at);
    case 'submitted':
      return Date.parse(run.submitted_at ?? run.created_at);
    case 'id':
      return run.run_id;
    default:
      return run[column];
  }
}

/** Its duration, so far if it still runs; null if unknown. */
export function secondsOf({
  ended_at: ended,
  started_at: started,
  state
}: IRun): number | null {
  return started === null || (ended === null && state !== 'running')
    ? null
    : secondsBetween(started, ended);
}

/** The GPU-hours of all its attempts so far; null for a run without GPUs, or of which no attempt is known. */
export function gpuHoursOf(run: IRun): number | null {
  const { attempts, gpus_per_node: gpus, nodes, state } = run;
  const started = attempts.filter(
    ({ ended_at: ended, started_at: began }, at) =>
      began !== null &&
      (ended !== null || (state === 'running' && at === attempts.length - 1))
  );
  return !gpus || started.length === 0
    ? null
    : started.reduce(
        (sum, { ended_at: ended, nodes: { length }, started_at: began }) =>
          sum +
          ((length || nodes) * gpus * secondsBetween(began ?? '', ended)) /
            3600,
        0
      );
}

/** Runs by their groups; the groups come in the order of their first runs, what belongs to none is last. */
export function groupedRuns(
  runs: readonly IRun[],
  group: RunGrouping,
  trans: TranslationBundle
): readonly IRunGroup[] {
  if (group === 'none') {
    return [{ key: null, label: null, runs }];
  }
  const groups = new Map<string | null, IRun[]>();
  for (const run of runs) {
    const key = groupKey(run, group);
    const members = groups.get(key);
    if (members) {
      members.push(run);
    } else {
      groups.set(key, [run]);
    }
  }
  const rest = groups.get(null);
  groups.delete(null);
  const found: IRunGroup[] = [...groups].map(([key, members]) => ({
    key,
    label: key,
    runs: members
  }));
  if (group === 'array') {
    found.splice(0, found.length, ...arrayGroups(found, trans));
  }
  if (rest) {
    found.push({ key: null, label: restText(group, trans), runs: rest });
  }
  return found;
}

function groupKey(run: IRun, group: RunGrouping): string | null {
  switch (group) {
    case 'notebook':
      return run.notebook;
    case 'array':
      return run.children === null ? null : run.name;
    default:
      return run.name;
  }
}

function arrayGroups(
  groups: readonly IRunGroup[],
  trans: TranslationBundle
): IRunGroup[] {
  return groups.map(({ key, runs }) => ({
    key,
    label: trans.__('Array %1', key),
    runs
  }));
}

function restText(group: RunGrouping, trans: TranslationBundle): string {
  return group === 'array'
    ? trans.__('Not in an array')
    : trans.__('No notebook');
}
