import {
  asText,
  listOf,
  numberOf,
  numberOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';

/** A user who holds what a run waits for. */
export type IHolder = wire.IHolder;

/**
 * Why a run waits.
 */
export interface IWaitReason {
  readonly reason: string | null;
  /** Its place among those that wait for their turn, from 1. */
  readonly position: number | null;
  /** Who is counted for the place, in words. */
  readonly counted: string | null;
  /** The first of those before it. */
  readonly ahead: readonly string[];
  readonly expectedStart: string | null;
  readonly holders: readonly IHolder[];
  /** What would start now in its place, a sentence each. */
  readonly wouldStartNow: readonly string[];
  /** How many other ways were asked for. */
  readonly tried: number;
}

/** A reason from an answer. */
export function decodeWait(value: unknown): IWaitReason {
  const from = recordOf<wire.IWaitReason>(value, 'reason');
  return {
    reason: textOrNull(from, 'reason'),
    position: numberOrNull(from, 'position'),
    counted: textOrNull(from, 'counted'),
    ahead: listOf(from, 'ahead', asText),
    expectedStart: textOrNull(from, 'expected_start'),
    holders: listOf(from, 'holders', decodeHolder),
    wouldStartNow: listOf(from, 'would_start_now', asText),
    tried: numberOrNull(from, 'tried') ?? 0
  };
}

function decodeHolder(value: unknown): IHolder {
  const from = recordOf<wire.IHolder>(value, 'holder');
  return {
    user: textOf(from, 'user'),
    accelerators: numberOf(from, 'accelerators'),
    nodes: numberOf(from, 'nodes'),
    jobs: numberOf(from, 'jobs')
  };
}
