import { isRecord } from '../api';

/** The type of a cell's output that is a run; its data holds the run's id and name, nothing else. */
export const MIME_TYPE = 'application/vnd.hyperpod.run+json';

/** The version of the data that is understood here. */
const VERSION = 1;

/** As the core makes them, with the child's index of an array. */
const RUN_ID = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?(\.\d{1,9})?$/;

const MAX_NAME = 200;

/**
 * What an output's data names: a run, or nothing that could be shown.
 */
export type OutputData =
  | { readonly kind: 'run'; readonly runId: string; readonly name: string }
  | { readonly kind: 'newer' }
  | { readonly kind: 'malformed' };

/** Read an output's data, which anybody may have written. */
export function decodeOutput(value: unknown): OutputData {
  if (!isRecord(value) || typeof value.version !== 'number') {
    return { kind: 'malformed' };
  }
  if (value.version > VERSION) {
    return { kind: 'newer' };
  }
  const { name, run_id: runId } = value;
  if (typeof runId !== 'string' || !RUN_ID.test(runId)) {
    return { kind: 'malformed' };
  }
  const isName = typeof name === 'string' && name.trim() !== '';
  return {
    kind: 'run',
    runId,
    name: isName ? name.trim().slice(0, MAX_NAME) : runId
  };
}
