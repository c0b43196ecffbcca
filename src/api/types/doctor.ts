/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';

/** What is to be examined. */
export interface IDoctorBody {
  /** Only the way to this cluster of the configuration; default: all. */
  readonly cluster?: string | null;
  /** At the end send a real job to that cluster, or the default one: one task on one node, for at most three minutes; then it is cancelled and removed. */
  readonly job?: boolean;
}

/** One check. */
export interface IDoctorCheck {
  /** A stable word for it, such as `security-groups`. */
  readonly key: string;
  /** Its name for people. */
  readonly title: string;
  /** Where on the way it stands. */
  readonly group:
    | 'installation'
    | 'metadata'
    | 'role'
    | 'domain'
    | 'security-groups'
    | 'interfaces'
    | 'mount'
    | 'partition'
    | 'scheduler'
    | 'identity'
    | 'queue'
    | 'job';
  /** How it is. */
  readonly level: 'ok' | 'warn' | 'fail' | 'unknown';
  /** What was seen, or why it could not be looked at. */
  readonly evidence: string;
  /** What to do about it; null where nothing is to be done. */
  readonly fix: string | null;
  /** Who can do that; null where nothing is to be done. */
  readonly who: 'you' | 'admin' | null;
  /** What of it was looked at where there are several: a cluster's name, say. Key and this are the check's identity. */
  readonly about: string | null;
  readonly name: string;
}

/** Emitted each time that an examination of the doctor begins, comes a step further, or ends. Holds nothing of what it found. */
export interface IDoctorEvent {
  readonly number: number;
  readonly version: number;
  readonly state: 'running' | 'done' | 'cancelled' | 'failed';
}

/** An examination, as far as it has come. `number` is 0 before the first one; `problem` says why one broke; `cluster` and `job` are what was asked for. */
export interface IDoctorExamination {
  readonly number: number;
  readonly version: number;
  readonly cluster: string | null;
  readonly job: boolean;
  readonly state: 'none' | 'running' | 'done' | 'cancelled' | 'failed';
  readonly begun_at: string | null;
  readonly ended_at: string | null;
  readonly step: IDoctorStep | null;
  readonly checks: readonly IDoctorCheck[];
  readonly problem: IError | null;
}

/** The examination in Markdown, for an admin, without secrets. `name` is one for a file. */
export interface IDoctorReport {
  readonly name: string;
  readonly text: string;
}

/** What is looked at now. */
export interface IDoctorStep {
  readonly key: string;
  readonly about: string | null;
  readonly title: string;
  readonly name: string;
  readonly group: string;
}
