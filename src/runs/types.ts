import {
  asNumber,
  asText,
  listOf,
  numberOf,
  numberOrNull,
  partOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';

/**
 * The error of the rank that failed first.
 */
export interface IFirstError {
  readonly rank: number;
  readonly type: string;
  readonly message: string;
  readonly cell: number | null;
  readonly line: number | null;
}

/**
 * One execution of a run.
 */
export interface IAttempt {
  readonly number: number;
  readonly state: string;
  readonly reason: string | null;
  readonly exitCode: number | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly nodes: readonly string[];
  readonly firstError: IFirstError | null;
}

/**
 * A run as all faces show it; times are ISO 8601.
 */
export interface IRun {
  readonly runId: string;
  readonly name: string;
  readonly cluster: string;
  readonly orchestrator: string;
  /** Whose run it is. */
  readonly user: string | null;
  /** Whether it is the server's own user's; only then can anything be done to it. */
  readonly isOwn: boolean;
  /** The shared space of Studio that it acts as. */
  readonly space: string | null;
  readonly queue: string | null;
  readonly state: string;
  readonly reason: string | null;
  readonly reasonCode: string | null;
  readonly exitCode: number | null;
  /** When it was sent from here, by which lists are sorted. */
  readonly createdAt: string | null;
  /** When the scheduler took it. */
  readonly submittedAt: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly schedulerId: string | null;
  /** The kind of object that the scheduler has of it, where it has several. */
  readonly kind: string | null;
  readonly parent: string | null;
  readonly bundle: string | null;
  /** The notebook that it came from: an absolute path on the server. */
  readonly notebook: string | null;
  readonly nodes: number | null;
  readonly processesPerNode: number | null;
  readonly attempts: readonly IAttempt[];
  /** How many children an array has in which state; empty for other runs. */
  readonly children: Readonly<Record<string, number>>;
  /** The answer as it came, for callers that are programs. */
  readonly plain: Readonly<Record<string, unknown>>;
}

/** States after which nothing happens by itself. */
const ENDED = new Set(['succeeded', 'failed', 'cancelled']);

/** Whether a state is one after which nothing happens by itself. */
export function isEnded(state: string): boolean {
  return ENDED.has(state);
}

/** A run from an answer. */
export function decodeRun(value: unknown): IRun {
  const from = recordOf<wire.IRun>(value, 'run');
  const own: unknown = from.own;
  return {
    runId: textOf(from, 'run_id'),
    name: textOrNull(from, 'name') ?? textOf(from, 'run_id'),
    cluster: textOrNull(from, 'cluster') ?? '',
    orchestrator: textOrNull(from, 'orchestrator') ?? '',
    user: textOrNull(from, 'user'),
    isOwn: own !== false,
    space: textOrNull(from, 'space'),
    queue: textOrNull(from, 'queue'),
    state: textOf(from, 'state'),
    reason: textOrNull(from, 'reason'),
    reasonCode: textOrNull(from, 'reason_code'),
    exitCode: numberOrNull(from, 'exit_code'),
    createdAt: textOrNull(from, 'created_at'),
    submittedAt: textOrNull(from, 'submitted_at'),
    startedAt: textOrNull(from, 'started_at'),
    endedAt: textOrNull(from, 'ended_at'),
    schedulerId: textOrNull(from, 'scheduler_id'),
    kind: textOrNull(from, 'kind'),
    parent: textOrNull(from, 'parent'),
    bundle: textOrNull(from, 'bundle'),
    notebook: textOrNull(from, 'notebook'),
    nodes: numberOrNull(from, 'nodes'),
    processesPerNode: numberOrNull(from, 'processes_per_node'),
    attempts: listOf(from, 'attempts', decodeAttempt),
    children: partOrNull(from, 'children', countsOf) ?? {},
    plain: from
  };
}

function countsOf(value: unknown): Record<string, number> {
  const counts = Object.entries(recordOf(value, 'children'));
  return Object.fromEntries(
    counts.map(([state, count]) => [state, asNumber(count, state)])
  );
}

function decodeAttempt(value: unknown): IAttempt {
  const from = recordOf<wire.IAttempt>(value, 'attempt');
  return {
    number: numberOf(from, 'number'),
    state: textOrNull(from, 'state') ?? 'unknown',
    reason: textOrNull(from, 'reason'),
    exitCode: numberOrNull(from, 'exit_code'),
    startedAt: textOrNull(from, 'started_at'),
    endedAt: textOrNull(from, 'ended_at'),
    nodes: listOf(from, 'nodes', asText),
    firstError: partOrNull(from, 'first_error', decodeFirstError)
  };
}

function decodeFirstError(value: unknown): IFirstError {
  const from = recordOf<wire.IFirstError>(value, 'first error');
  return {
    rank: numberOf(from, 'rank'),
    type: textOrNull(from, 'type') ?? '',
    message: textOrNull(from, 'message') ?? '',
    cell: numberOrNull(from, 'cell'),
    line: numberOrNull(from, 'line')
  };
}
