import type { Schema } from '../api';

/** The error of the rank that failed first. */
export type IFirstError = Schema<'FirstError'>;

/** One execution of a run. */
export type IAttempt = Schema<'Attempt'>;

/** A run as all faces show it; times are ISO 8601. */
export type IRun = Schema<'Run'>;

/** Final states. */
const ENDED = new Set(['succeeded', 'failed', 'cancelled']);

/** Whether a state is final. */
export function isEnded(state: string): boolean {
  return ENDED.has(state);
}
