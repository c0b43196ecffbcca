import { IRun } from './types';

/**
 * The names of runs by their ids; of several with one name the second oldest is “name #2”.
 *
 * @param runs - newest first
 */
export function runNames(runs: readonly IRun[]): ReadonlyMap<string, string> {
  const seen = new Map<string, number>();
  const names = new Map<string, string>();
  for (const { name, run_id } of [...runs].reverse()) {
    const number = (seen.get(name) ?? 0) + 1;
    seen.set(name, number);
    names.set(run_id, number === 1 ? name : `${name} #${number}`);
  }
  return names;
}
