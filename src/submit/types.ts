import { asText, listOf, recordOf, textOf, textOrNull } from '../api';
import type * as wire from '../api/types';

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
export interface ISubmitBody extends Omit<wire.ISubmitBody, 'spec'> {
  readonly run_id: string;
  readonly spec: JsonObject;
}

/** Something that was found wrong or worth saying; `field` is a path in the spec. */
export type IFinding = wire.IFoundThing;

/** Names to choose from, by the spec's field. */
export type Choices = Readonly<Record<string, readonly string[]>>;

/** How bad a finding is; an `error` refuses the run. */
export type Level = IFinding['level'];

/** A part of the code, as it will run. */
export type IPart = wire.IPreviewPart;

/**
 * Exactly what would run.
 */
export interface IPreview extends Omit<wire.IPreview, 'run_id'> {
  /** The answer as it came, for callers that are programs. */
  readonly plain: Readonly<Record<string, unknown>>;
}

/** A preview from an answer. */
export function decodePreview(value: unknown): IPreview {
  const from = recordOf<wire.IPreview>(value, 'preview');
  const rendered = recordOf<wire.IRenderedText>(from.rendered, 'rendered');
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
  const from = recordOf<wire.IFoundThing>(value, 'finding');
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
  const from = recordOf<wire.IPreviewPart>(value, 'part');
  return {
    title: textOf(from, 'title'),
    language: textOrNull(from, 'language') ?? 'text',
    text: textOf(from, 'text'),
    notes: listOf(from, 'notes', asText)
  };
}
