import { ApiError } from '../api';
import { IRun } from '../runs/types';
import { ISubmitClient } from './client';
import { ISubmitBody } from './types';

/** Milliseconds before each further try. */
const PAUSES = [500, 1500, 4000];

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
      if (!ApiError.of(reason).isUnanswered) {
        throw reason;
      }
      await new Promise(resolve => setTimeout(resolve, pause));
    }
  }
  return client.submit(body);
}
