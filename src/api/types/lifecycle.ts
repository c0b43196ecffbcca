/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';

/** How far it has come. `none`: none has run here; `stopped`: it has said nothing for too long; `unknown`: `problem` says why its file tells nothing. */
export interface ILifecycleAnswer {
  readonly state:
    'none' | 'running' | 'done' | 'failed' | 'stopped' | 'unknown';
  readonly app: 'jupyterlab' | 'code-editor' | null;
  readonly started_at: string | null;
  readonly updated_at: string | null;
  readonly steps: readonly ILifecycleStep[];
  readonly problem: IError | null;
}

/** The end of its log; with `cut` there is more before it in the file. */
export interface ILifecycleLog {
  readonly path: string;
  readonly text: string;
  readonly cut: boolean;
}

/** A step of the script, and what it has to say. */
export interface ILifecycleStep {
  readonly name: string;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'skipped';
  readonly message: string;
}
