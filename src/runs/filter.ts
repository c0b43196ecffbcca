import { IRun, isEnded } from './types';

/** The states that runs can be filtered by, each with those that it stands for. */
export const FILTERS: Readonly<Record<string, readonly IRun['state'][]>> = {
  running: ['running'],
  waiting: ['waiting', 'submitting'],
  failed: ['failed', 'unknown'],
  succeeded: ['succeeded'],
  cancelled: ['cancelled']
};

/**
 * Which runs are wanted: those with all words, in one of the states if there are any.
 */
export interface IRunFilter {
  readonly text: string;
  readonly states: ReadonlySet<string>;
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
    const { cluster, notebook, queue, reason, run_id, state } = run;
    const all = [
      names.get(run_id),
      run_id,
      cluster,
      queue,
      state,
      reason,
      notebook
    ]
      .join(' ')
      .toLowerCase();
    return (
      (wanted.size === 0 || wanted.has(state)) &&
      words.every(word => all.includes(word))
    );
  });
}
