import { TranslationBundle } from '@jupyterlab/translation';

import { pageLanguage } from '../components/words';
import { isActive } from '../runs/filter';
import { IRun } from '../runs/types';

/**
 * Runs of one day, or those that have not ended.
 */
export interface IRunGroup {
  readonly label: string;
  readonly runs: readonly IRun[];
}

/**
 * The active runs, then the others by the day on which they ended, the last first.
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
  const ended = runs.filter(run => !isActive(run));
  ended.sort((one, other) => endOf(other) - endOf(one));
  for (const run of ended) {
    const label = dayText(endOf(run), trans);
    groups.set(label, [...(groups.get(label) ?? []), run]);
  }
  return [...groups].map(([label, found]) => ({ label, runs: found }));
}

function endOf({ created_at, ended_at, submitted_at }: IRun): number {
  return Date.parse(ended_at ?? submitted_at ?? created_at);
}

function dayText(moment: number, trans: TranslationBundle): string {
  const day = new Date(moment);
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
