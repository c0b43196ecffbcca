import { JSONExt } from '@lumino/coreutils';
import { TranslationBundle } from '@jupyterlab/translation';

import { isRecord } from '../api';
import { IField, PARAMETERS } from './fields';
import { written } from './quantities';
import { Json, JsonObject } from './types';

/** The values of the fields, by path; a field that is missing or empty is not set. */
export type Texts = Readonly<Record<string, string>>;

/**
 * What was typed in, as a spec (without its source), and what is wrong with it, by path.
 */
export interface IRead {
  readonly spec: JsonObject;
  readonly problems: Readonly<Record<string, string>>;
}

/** Secrets and variables: their values stay texts, whatever they look like. */
const VARIABLES = 'environment.variables';
const PLAIN_TABLES = [VARIABLES, 'environment.secrets'];

type Building = { [name: string]: Json | Building };

/** Read the fields. */
export function readTexts(
  fields: readonly IField[],
  texts: Texts,
  trans: TranslationBundle
): IRead {
  const spec: Building = {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const typed = texts[field.path] ?? '';
    if (typed.trim() === '') {
      continue;
    }
    try {
      put(spec, field.path.split('.'), valueOf(field, typed, trans));
    } catch (reason) {
      problems[field.path] = reason instanceof Error ? reason.message : '';
    }
  }
  return { spec: spec, problems };
}

/** What a form shows of a spec. */
export function textsOf(fields: readonly IField[], spec: JsonObject): Texts {
  const texts: Record<string, string> = {};
  for (const field of fields) {
    const value = find(spec, field.path.split('.'));
    const written = value === undefined ? '' : textOf(field, value);
    if (written !== '') {
      texts[field.path] = written;
    }
  }
  return texts;
}

function valueOf(field: IField, typed: string, trans: TranslationBundle): Json {
  const trimmed = typed.trim();
  switch (field.kind) {
    case 'integer':
      return wholeNumber(field, trimmed, trans);
    case 'truth':
      return trimmed === 'true';
    case 'lines':
      return typed.split('\n').filter(line => line.trim() !== '');
    case 'pairs':
      return pairs(field, typed, trans);
    case 'json':
      return jsonObject(trimmed, trans);
    case 'long':
      return typed;
    default:
      return trimmed;
  }
}

function wholeNumber(
  field: IField,
  typed: string,
  trans: TranslationBundle
): number {
  const value = Number(typed);
  if (!/^-?\d+$/.test(typed)) {
    throw new Error(trans.__('Enter a whole number, such as 2.'));
  }
  if (field.minimum !== null && value < field.minimum) {
    throw new Error(trans.__('Must be at least %1.', field.minimum));
  }
  if (field.maximum !== null && value > field.maximum) {
    throw new Error(trans.__('Must be at most %1.', field.maximum));
  }
  return value;
}

/** Lines `NAME=value`; a name alone is a switch, or a secret without a reference. */
function pairs(field: IField, typed: string, trans: TranslationBundle): Json {
  const plain = PLAIN_TABLES.includes(field.path);
  const table: Record<string, Json> = {};
  for (const line of typed.split('\n').filter(one => one.trim() !== '')) {
    const at = line.indexOf('=');
    if (at < 0 && [VARIABLES, PARAMETERS].includes(field.path)) {
      throw new Error(
        trans.__('Enter %1=VALUE, or %1= for an empty value.', line.trim())
      );
    }
    const name = (at < 0 ? line : line.slice(0, at)).trim();
    const value = at < 0 ? null : line.slice(at + 1);
    table[name] =
      field.path === PARAMETERS
        ? checkedParameter(value ?? '', trans)
        : plain
          ? (value ?? '')
          : flagValue(value);
  }
  return table;
}

/** A value of a parameter: JSON, or a text. */
function parameterValue(value: string): Json {
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value.trim();
  }
}

/** The same, but for a number that JavaScript would change. */
function checkedParameter(text: string, trans: TranslationBundle): Json {
  const value = parameterValue(text);
  const isWhole = /^\s*-?\d+\s*$/.test(text);
  if (
    typeof value === 'number' &&
    !(isWhole ? Number.isSafeInteger(value) : Number.isFinite(value))
  ) {
    throw new Error(trans.__('The number %1 is too large.', text.trim()));
  }
  return value;
}

function flagValue(value: string | null): Json {
  const word = value?.trim() ?? 'true';
  if (word === 'true' || word === 'false') {
    return word === 'true';
  }
  return /^\d{1,15}$/.test(word) ? Number(word) : word;
}

function jsonObject(typed: string, trans: TranslationBundle): Json {
  let value: unknown = null;
  try {
    value = JSON.parse(typed);
  } catch {
    // The same words as for JSON that is no object.
  }
  if (!isRecord(value)) {
    throw new Error(trans.__('Enter a JSON object: names and values in {}.'));
  }
  return value as JsonObject;
}

/** A value as it is typed into its field; empty for the standard one. */
export function textOf(field: IField, value: Json): string {
  if (value === null || isStandard(field, value)) {
    return '';
  }
  if (Array.isArray(value)) {
    return value.map(String).join('\n');
  }
  if (typeof value === 'number' && field.unit !== null) {
    return written(field.unit, value);
  }
  if (typeof value !== 'object') {
    return String(value);
  }
  const entries = Object.entries(value);
  if (entries.length === 0) {
    return '';
  }
  return field.kind === 'pairs'
    ? entries.map(([name, one]) => pairText(field, name, one)).join('\n')
    : JSON.stringify(value, null, 2);
}

function pairText(field: IField, name: string, value: Json): string {
  if (value === '' && ![VARIABLES, PARAMETERS].includes(field.path)) {
    return name;
  }
  const isPlain =
    typeof value === 'string' &&
    (field.path !== PARAMETERS || parameterValue(value) === value);
  return `${name}=${isPlain ? value : JSON.stringify(value)}`;
}

function isStandard(field: IField, value: Json): boolean {
  return JSONExt.deepEqual(field.standard, value);
}

function find(
  from: Json | undefined,
  path: readonly string[]
): Json | undefined {
  return path.reduce<Json | undefined>(
    (here, name) => (isRecord(here) ? here[name] : undefined),
    from
  );
}

function put(into: Building, path: readonly string[], value: Json): void {
  let here = into;
  for (const name of path.slice(0, -1)) {
    const next = here[name] ?? {};
    here[name] = next;
    here = next as Building;
  }
  here[path[path.length - 1]] = value;
}
