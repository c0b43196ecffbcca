import { TranslationBundle } from '@jupyterlab/translation';

import { ApiError } from '../api';
import { INodeClient } from './client';
import { INodeOrder, INodeResult } from './types';

/** The most nodes that AWS takes at once. */
export const BATCH = 25;

/** The most nodes that one request may name; the scheduler takes them at once. */
export const MOST_NODES = 500;

/**
 * What came of an action so far, and how much of it there is.
 */
export interface IProgress {
  readonly results: readonly INodeResult[];
  readonly total: number;
}

/**
 * Do something to nodes, as many at a time as go at once, so that one sees how it goes on and may stop between.
 *
 * Where nothing of a batch was done those after it are not sent: what is in the way is in theirs too.
 *
 * @param tell - called with the results after each batch
 * @param goesOn - whether the next batch is still wanted
 * @returns one result for each node; of those that were not sent, or whose answer was lost, it says so
 */
export async function actInBatches(
  client: INodeClient,
  cluster: string,
  order: INodeOrder,
  options: {
    readonly tell: (progress: IProgress) => void;
    readonly goesOn: () => boolean;
    readonly trans: TranslationBundle;
  }
): Promise<readonly INodeResult[]> {
  const { goesOn, tell, trans } = options;
  const { action, nodes } = order;
  const size = action === 'reboot' || action === 'replace' ? BATCH : MOST_NODES;
  const results: INodeResult[] = [];
  for (let begin = 0; begin < nodes.length; begin += size) {
    const batch = nodes.slice(begin, begin + size);
    let done: readonly INodeResult[];
    try {
      done = await client.act(cluster, { ...order, nodes: batch });
    } catch (reason) {
      const error = unsure(ApiError.of(reason), trans);
      done = batch.map(name => resultOf(name, error));
    }
    results.push(...done);
    const rest = nodes.slice(begin + size);
    const failed = done.every(one => one.error !== null);
    if (rest.length > 0 && (failed || !goesOn())) {
      const why = failed
        ? trans.__('Not submitted because all nodes before it failed.')
        : trans.__('Not submitted: you stopped the action.');
      const error = ApiError.local('not_sent', why);
      results.push(...rest.map(name => resultOf(name, error)));
      break;
    }
    tell({ results: [...results], total: nodes.length });
  }
  return results;
}

function resultOf(name: string, error: ApiError): INodeResult {
  return { name, instance: null, node: null, ok: false, error };
}

/** Without an answer it may have been done. */
function unsure(error: ApiError, trans: TranslationBundle): ApiError {
  return error.isUnanswered
    ? ApiError.local(
        error.code,
        trans.__(
          'The result is unknown because there was no response. Check the state of the node before you try again.'
        ),
        error.status
      )
    : error;
}
