import {
  ApiError,
  listOf,
  numberOf,
  partOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';
import { decodeProblem } from '../clusters/types';

/** A check: what was looked at, how it is, and who mends what is not well. */
export interface ICheck {
  readonly key: string;
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
  readonly begunAt: string | null;
  readonly endedAt: string | null;
  /** What is looked at now. */
  readonly step: string | null;
  readonly checks: readonly ICheck[];
  /** Why it broke. */
  readonly problem: ApiError | null;
}
