/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

/** The one shape of an error. */
export interface IError {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

export type RunState =
  | 'submitting'
  | 'waiting'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'unknown';
