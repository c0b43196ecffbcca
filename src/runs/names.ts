import { IRun } from './types';

/**
 * The names of runs by their ids. Runs with the same name have the end of their id as well: it stays the same when others are deleted.
 */
export function runNames(runs: readonly IRun[]): ReadonlyMap<string, string> {
  const counts = new Map<string, number>();
  for (const { name } of runs) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return new Map(
    runs.map(({ name, run_id }) => [
      run_id,
      counts.get(name) === 1 ? name : `${name} · ${run_id.split('-').pop()}`
    ])
  );
}
