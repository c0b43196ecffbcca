import { TranslationBundle } from '@jupyterlab/translation';

import { pageLanguage } from '../components/words';
import { IRun, isEnded } from '../runs/types';

/** The states that runs can be filtered by, each with those that it stands for. */
export const FILTERS: Readonly<Record<string, readonly IRun['state'][]>> = {
  running: ['running'],
  waiting: ['waiting', 'submitting'],
  failed: ['failed', 'unknown'],
  succeeded: ['succeeded']
};

/**
 * Which runs are wanted: those with all words, in one of the states if there are any.
 */
export interface IRunFilter {
  readonly text: string;
  readonly states: ReadonlySet<string>;
}

/**
 * Runs of one day, or those that have not ended.
 */
export interface IRunGroup {
  readonly label: string;
  readonly runs: readonly IRun[];
}

/** Whether a run is waiting or running. */
export function isActive({ state }: IRun): boolean {
  return !isEnded(state) && state !== 'unknown';
}

/** The runs that are wanted. */
export function filterRuns(
  runs: readonly IRun[],
  names: ReadonlyMap<string, string>,
  { states, text }: IRunFilter
): readonly IRun[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = new Set([...states].flatMap(state => FILTERS[state] ?? []));
  return runs.filter(run => {
    const { cluster, queue, reason, run_id, state } = run;
    const all = [names.get(run_id), run_id, cluster, queue, state, reason]
      .join(' ')
      .toLowerCase();
    return (
      (wanted.size === 0 || wanted.has(state)) &&
      words.every(word => all.includes(word))
    );
  });
}

/**
 * The active runs, then the others by the day on which they were sent.
 *
 * @param runs - newest first
 */
export function groupRuns(
  runs: readonly IRun[],
  trans: TranslationBundle
): readonly IRunGroup[] {
  const groups = new Map<string, IRun[]>();
  const active = runs.filter(isActive);
  if (active.length > 0) {
    groups.set(trans.__('Active'), active);
  }
  for (const run of runs) {
    if (!isActive(run)) {
      const label = dayText(run.submitted_at ?? run.created_at, trans);
      groups.set(label, [...(groups.get(label) ?? []), run]);
    }
  }
  return [...groups].map(([label, found]) => ({ label, runs: found }));
}

function dayText(iso: string, trans: TranslationBundle): string {
  const day = new Date(iso);
  const today = new Date();
  const yesterday = new Date();
  yesterday.setDate(today.getDate() - 1);
  if (day.toDateString() === today.toDateString()) {
    return trans.__('Today');
  }
  if (day.toDateString() === yesterday.toDateString()) {
    return trans.__('Yesterday');
  }
  return new Intl.DateTimeFormat(pageLanguage(), {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    ...(day.getFullYear() !== today.getFullYear() && { year: 'numeric' })
  }).format(day);
}
