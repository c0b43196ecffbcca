import { numberOrNull, partOrNull, recordOf, textOf } from '../api';
import type * as wire from '../api/types';

/**
 * What a run used, in all its attempts together.
 */
export interface IUsage {
  /** The scheduler's accounting says so; else the run's own records do. */
  readonly isAccounted: boolean;
  /** Seconds times accelerators; null when that isn't known. */
  readonly acceleratorSeconds: number | null;
  readonly isGpu: boolean;
  readonly cpuSeconds: number | null;
  /** Bytes, of the largest process at least. */
  readonly maxMemory: number | null;
  readonly exitCode: number | null;
  readonly signal: number | null;
}

/** What a run used, from an answer; null while it has not ended. */
export function decodeUsage(value: unknown): IUsage | null {
  return partOrNull(
    recordOf<wire.IRunUsage>(value, 'usage'),
    'usage',
    decodeAmounts
  );
}

function decodeAmounts(value: unknown): IUsage {
  const from = recordOf<wire.IUsage>(value, 'usage');
  return {
    isAccounted: textOf(from, 'source') === 'accounting',
    acceleratorSeconds: numberOrNull(from, 'accelerator_seconds'),
    isGpu: textOf(from, 'accelerator_kind') === 'gpu',
    cpuSeconds: numberOrNull(from, 'cpu_seconds'),
    maxMemory: numberOrNull(from, 'max_memory'),
    exitCode: numberOrNull(from, 'exit_code'),
    signal: numberOrNull(from, 'signal')
  };
}
