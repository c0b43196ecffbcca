import { structuredPatch } from 'diff';

import { ISentCell } from '../notebook/client';
import { IField } from './fields';
import { oneWay } from './quantities';
import { ICodeCell } from './source';
import { Texts } from './values';

/**
 * A setting that is another one than in the last run; empty is the standard value.
 */
export interface ISettingChange {
  readonly field: IField;
  readonly before: string;
  readonly after: string;
}

/**
 * A piece of code that is not as it was in the last run.
 */
export interface ICodeChange {
  /** The cell's number, or null for a file. */
  readonly number: number | null;
  readonly kind: 'new' | 'gone' | 'changed';
  /** Lines that changed, with a few around them; the first character says how, as in a patch. */
  readonly lines: readonly string[];
}

/** Settings that differ. */
export function settingChanges(
  fields: readonly IField[],
  before: Texts,
  after: Texts
): readonly ISettingChange[] {
  return fields
    .map(field => ({
      field,
      before: said(field, before),
      after: said(field, after)
    }))
    .filter(change => change.before !== change.after);
}

/** Cells that differ: known by their ids, where they have one. Null when one of those that were sent can't be read any more. */
export function cellChanges(
  sent: readonly ISentCell[],
  now: readonly ICodeCell[]
): readonly ICodeChange[] | null {
  const known = new Map<string, ISentCell & { readonly text: string }>();
  for (const { text, ...cell } of sent) {
    if (text === null) {
      return null;
    }
    known.set(keyOf(cell.id, cell.number), { ...cell, text });
  }
  const changes: ICodeChange[] = [];
  for (const cell of now.filter(one => one.text.trim() !== '')) {
    const before =
      known.get(keyOf(cell.id, cell.number)) ??
      known.get(keyOf(null, cell.number));
    if (!before) {
      changes.push(pieceOf(cell.number, 'new', '', cell.text));
      continue;
    }
    known.delete(keyOf(before.id, before.number));
    if (before.text !== cell.text) {
      changes.push(pieceOf(cell.number, 'changed', before.text, cell.text));
    }
  }
  for (const cell of known.values()) {
    changes.push(pieceOf(cell.number, 'gone', cell.text, ''));
  }
  return changes.sort((one, other) => (one.number ?? 0) - (other.number ?? 0));
}

/** What differs in a file; nothing when it is the same. */
export function fileChanges(
  before: string,
  now: string
): readonly ICodeChange[] {
  return before === now ? [] : [pieceOf(null, 'changed', before, now)];
}

function pieceOf(
  number: number | null,
  kind: ICodeChange['kind'],
  before: string,
  now: string
): ICodeChange {
  const { hunks } = structuredPatch('', '', before, now, '', '', {
    context: 2
  });
  // A backslash begins what a patch says of the file's end.
  const lines = hunks
    .flatMap(hunk => hunk.lines)
    .filter(line => !line.startsWith('\\'));
  return { number, kind, lines };
}

function keyOf(id: string | null, number: number): string {
  return id === null ? `#${number}` : id;
}

/** What a field says; its standard value is as good as nothing. */
function said(field: IField, texts: Texts): string {
  const typed = (texts[field.path] ?? '').trim();
  const text = field.unit === null ? typed : oneWay(field.unit, typed);
  return text === field.standardText ? '' : text;
}
