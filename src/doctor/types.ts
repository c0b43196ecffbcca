import {
  ApiError,
  listOf,
  numberOf,
  partOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import type * as wire from '../api/types';
import { decodeError } from '../clusters/types';

/** A check: what was looked at, how it is, and who mends what is not well. */
export interface ICheck {
  readonly key: string;
  /** What of it was looked at where there are several, such as a cluster's name. */
  readonly about: string | null;
  /** What it is called, with what it is about. */
  readonly name: string;
  readonly group: string;
  /** `ok`, `warn`, `fail`, or `unknown`: it could not be checked. */
  readonly level: string;
  readonly evidence: string;
  readonly fix: string | null;
  /** `you` or `admin`. */
  readonly who: string | null;
}

/** An examination, as far as it has come. */
export interface IExamination {
  /** 0 before the first one. */
  readonly number: number;
  readonly version: number;
  /** `none`, `running`, `done`, `cancelled` or `failed`. */
  readonly state: string;
  /** Only the way to this cluster; null: all. */
  readonly cluster: string | null;
  /** A tiny job is sent at the end. */
  readonly job: boolean;
  readonly begunAt: string | null;
  readonly endedAt: string | null;
  /** What is looked at now. */
  readonly step: string | null;
  readonly checks: readonly ICheck[];
  /** Why it broke. */
  readonly problem: ApiError | null;
}

/** An examination, as the server sends it. */
export function decodeExamination(value: unknown): IExamination {
  const from = recordOf<wire.IDoctorExamination>(value, 'examination');
  return {
    number: numberOf(from, 'number'),
    version: numberOf(from, 'version'),
    state: textOf(from, 'state'),
    cluster: textOrNull(from, 'cluster'),
    job: truthOf(from, 'job'),
    begunAt: textOrNull(from, 'begun_at'),
    endedAt: textOrNull(from, 'ended_at'),
    step: partOrNull(from, 'step', decodeStep),
    checks: listOf(from, 'checks', decodeCheck),
    problem: partOrNull(from, 'problem', decodeError)
  };
}

function decodeStep(value: unknown): string {
  return textOf(recordOf<wire.IDoctorStep>(value, 'step'), 'name');
}

function decodeCheck(value: unknown): ICheck {
  const from = recordOf<wire.IDoctorCheck>(value, 'check');
  return {
    key: textOf(from, 'key'),
    about: textOrNull(from, 'about'),
    name: textOf(from, 'name'),
    group: textOf(from, 'group'),
    level: textOf(from, 'level'),
    evidence: textOf(from, 'evidence'),
    fix: textOrNull(from, 'fix'),
    who: textOrNull(from, 'who')
  };
}
