import type { Schema } from '../api';

/** Plain JSON as the spec has it. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json };

/** A spec, or a part of one. */
export type JsonObject = { readonly [name: string]: Json };

/**
 * What is sent to be previewed or run; the server's own JSON Schema says what a spec may hold.
 */
export interface ISubmitBody extends Omit<Schema<'SubmitBody'>, 'spec'> {
  readonly run_id: string;
  readonly spec: JsonObject;
}

/** Something that was found wrong or worth saying; `field` is a path in the spec. */
export type IFinding = Schema<'FoundThing'>;

/** Names to choose from, by the spec's field. */
export type Choices = Readonly<Record<string, readonly string[]>>;

/** How bad a finding is; an `error` refuses the run. */
export type Level = IFinding['level'];

/** A part of the code, as it will run. */
export type IPart = Schema<'PreviewPart'>;

/** Exactly what would run. */
export type IPreview = Schema<'Preview'>;
