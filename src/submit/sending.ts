import { ApiError, NETWORK_ERROR, TIMEOUT_ERROR } from '../api';
import { IRun } from '../runs/types';
import { ISubmitClient } from './client';
import { ISubmitBody } from './types';

/** Milliseconds before each further try. */
const PAUSES = [500, 1500, 4000];

/** Statuses of a gateway that could not reach the server, or lost its answer. */
const GATEWAY = [502, 503, 504];

/**
 * Send a run, and again when no answer came: the run id makes any number of tries one run.
 */
export async function sendRun(
  client: ISubmitClient,
  body: ISubmitBody,
  pauses: readonly number[] = PAUSES
): Promise<IRun> {
  for (const pause of pauses) {
    try {
      return await client.submit(body);
    } catch (reason) {
      if (!isUnanswered(reason)) {
        throw reason;
      }
      await new Promise(resolve => setTimeout(resolve, pause));
    }
  }
  return client.submit(body);
}

/** Whether it is unknown what became of a request. */
export function isUnanswered(reason: unknown): boolean {
  return (
    reason instanceof ApiError &&
    (reason.code === NETWORK_ERROR ||
      reason.code === TIMEOUT_ERROR ||
      GATEWAY.includes(reason.status ?? 0))
  );
}
