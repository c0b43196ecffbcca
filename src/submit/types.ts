import { asText, listOf, recordOf, textOf, textOrNull } from '../api';

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
 * What is sent to be previewed or run.
 */
export interface ISubmitBody {
  readonly run_id: string;
  readonly cluster: string | null;
  readonly spec: JsonObject;
  readonly base?: string;
  readonly notebook?: JsonObject;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly clone_of?: string;
}

/** How bad a finding is; an `error` refuses the run. */
export type Level = 'error' | 'warning' | 'info';

/**
 * Something that was found wrong or worth saying; `field` is a path in the spec.
 */
export interface IFinding {
  readonly level: Level;
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly field: string | null;
}

/**
 * A part of the code, as it will run.
 */
export interface IPart {
  readonly title: string;
  readonly language: string;
  readonly text: string;
  readonly notes: readonly string[];
}

/**
 * Exactly what would run.
 */
export interface IPreview {
  readonly name: string;
  readonly rendered: { readonly name: string; readonly text: string };
  readonly command: readonly string[];
  readonly files: readonly string[];
  readonly parts: readonly IPart[];
  readonly findings: readonly IFinding[];
  /** The answer as it came, for callers that are programs. */
  readonly plain: Readonly<Record<string, unknown>>;
}

/** A preview from an answer. */
export function decodePreview(value: unknown): IPreview {
  const from = recordOf(value, 'preview');
  const rendered = recordOf(from.rendered, 'rendered');
  return {
    name: textOf(from, 'name'),
    rendered: {
      name: textOf(rendered, 'name'),
      text: textOf(rendered, 'text')
    },
    command: listOf(from, 'command', asText),
    files: listOf(from, 'files', asText),
    parts: listOf(from, 'parts', decodePart),
    findings: listOf(from, 'findings', decodeFinding),
    plain: from
  };
}

/** A finding from an answer, or from the detail of an error. */
export function decodeFinding(value: unknown): IFinding {
  const from = recordOf(value, 'finding');
  const level = textOrNull(from, 'level');
  return {
    level: level === 'warning' || level === 'info' ? level : 'error',
    code: textOrNull(from, 'code') ?? '',
    message: textOf(from, 'message'),
    hint: textOrNull(from, 'hint'),
    field: textOrNull(from, 'field')
  };
}

function decodePart(value: unknown): IPart {
  const from = recordOf(value, 'part');
  return {
    title: textOf(from, 'title'),
    language: textOrNull(from, 'language') ?? 'text',
    text: textOf(from, 'text'),
    notes: listOf(from, 'notes', asText)
  };
}
