import {
  ApiError,
  listOf,
  partOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import type * as wire from '../api/types';
import { decodeError } from '../clusters/types';

/** A step of the script that runs when this space starts. */
export interface ILifecycleStep {
  readonly name: string;
  /** `waiting`, `running`, `done`, `failed` or `skipped`. */
  readonly state: string;
  /** What it has to say. */
  readonly message: string;
}

/** How far that script has come. */
export interface ILifecycle {
  /** `none`, `running`, `done`, `failed`, `stopped` (it has said nothing for too long) or `unknown`. */
  readonly state: string;
  readonly startedAt: string | null;
  readonly updatedAt: string | null;
  readonly steps: readonly ILifecycleStep[];
  /** Why its file tells nothing. */
  readonly problem: ApiError | null;
}

/** The end of its log. */
export interface ILifecycleLog {
  readonly path: string;
  readonly text: string;
  /** There is more before it in the file. */
  readonly cut: boolean;
}

/** How far it has come, as the server sends it. */
export function decodeLifecycle(value: unknown): ILifecycle {
  const from = recordOf<wire.ILifecycleAnswer>(value, 'lifecycle');
  return {
    state: textOf(from, 'state'),
    startedAt: textOrNull(from, 'started_at'),
    updatedAt: textOrNull(from, 'updated_at'),
    steps: listOf(from, 'steps', decodeStep),
    problem: partOrNull(from, 'problem', decodeError)
  };
}

/** The end of its log, as the server sends it. */
export function decodeLifecycleLog(value: unknown): ILifecycleLog {
  const from = recordOf<wire.ILifecycleLog>(value, 'log');
  return {
    path: textOf(from, 'path'),
    text: textOf(from, 'text'),
    cut: truthOf(from, 'cut')
  };
}

function decodeStep(value: unknown): ILifecycleStep {
  const from = recordOf<wire.ILifecycleStep>(value, 'step');
  return {
    name: textOf(from, 'name'),
    state: textOf(from, 'state'),
    message: textOf(from, 'message')
  };
}
