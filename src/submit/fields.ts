import { isRecord } from '../api';
import { Unit, unitOf, written } from './quantities';
import { Json } from './types';

/** How a field is typed in. */
export type FieldKind =
  'text' | 'long' | 'integer' | 'choice' | 'truth' | 'lines' | 'pairs' | 'json';

/**
 * One field of the form, made from the spec's schema.
 */
export interface IField {
  /** The place in the spec, such as `resources.nodes`. */
  readonly path: string;
  readonly kind: FieldKind;
  /** The schema's own title; `labelOf` has better ones. */
  readonly title: string;
  readonly description: string;
  /** The value that stands for nothing typed in; null when there is none. */
  readonly standard: Json;
  /** The same as a text, empty when there is none. */
  readonly standardText: string;
  /** What its number counts, where it is written as a text such as 2h. */
  readonly unit: Unit | null;
  readonly choices: readonly string[];
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly pattern: string | null;
}

type Schema = Readonly<Record<string, unknown>>;

/** What runs is chosen before; the format is ours. */
const NOT_SHOWN = ['format', 'source'];

/** Texts longer than this have more than one line. */
const ONE_LINE = 8192;

/** The values of a notebook's parameters: the one field of a source. */
export const PARAMETERS = 'source.parameters';

/** The fields of a spec, in the schema's order. */
export function fieldsOf(schema: Schema): readonly IField[] {
  const notebook = typeOf(schema, { $ref: 'NotebookSource' }).properties;
  const found = isRecord(notebook) ? notebook.parameters : null;
  const fields = inner(schema, schema, '', false).filter(
    field => !NOT_SHOWN.includes(field.path.split('.')[0])
  );
  return isRecord(found)
    ? [{ ...fieldOf(PARAMETERS, found, found), kind: 'pairs' }, ...fields]
    : fields;
}

function inner(
  root: Schema,
  schema: Schema,
  prefix: string,
  optional: boolean
): IField[] {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  return Object.entries(properties).flatMap(([name, found]) => {
    const path = prefix + name;
    if (!isRecord(found) || 'oneOf' in found) {
      return [];
    }
    const type = typeOf(root, found);
    if (isRecord(type.properties)) {
      return inner(root, type, `${path}.`, optional || isOptional(found));
    }
    const field = fieldOf(path, found, type);
    // In a part that may be missing as a whole a standard value says that it is there.
    return [optional ? { ...field, standard: null, standardText: '' } : field];
  });
}

function isOptional(schema: Schema): boolean {
  return (
    Array.isArray(schema.anyOf) &&
    schema.anyOf.some(one => isRecord(one) && one.type === 'null')
  );
}

/** The type behind references and `null`. */
function typeOf(root: Schema, schema: Schema): Schema {
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').pop() ?? '';
    const types = isRecord(root.$defs) ? root.$defs : {};
    const found = types[name];
    return isRecord(found) ? found : {};
  }
  if (!Array.isArray(schema.anyOf)) {
    return schema;
  }
  const choices = schema.anyOf.filter(
    (one): one is Schema => isRecord(one) && one.type !== 'null'
  );
  // A number or a text, such as 7200 or 2h: typed in as a text.
  const text = choices.find(one => one.type === 'string');
  return typeOf(root, text ?? choices[0] ?? {});
}

function fieldOf(path: string, schema: Schema, type: Schema): IField {
  const number = (value: unknown) => (typeof value === 'number' ? value : null);
  const unit = unitIn(schema);
  return {
    path,
    kind: kindOf(type),
    title: text(schema.title) || text(type.title) || path,
    description: text(schema.description) || text(type.description),
    standard: (schema.default ?? null) as Json,
    standardText: standardText(schema.default, unit),
    unit,
    choices: Array.isArray(type.enum) ? type.enum.map(String) : [],
    minimum: number(type.minimum),
    maximum: number(type.maximum),
    pattern: text(type.pattern) || null
  };
}

function kindOf(type: Schema): FieldKind {
  if (Array.isArray(type.enum)) {
    return 'choice';
  }
  switch (type.type) {
    case 'integer':
    case 'number':
      return 'integer';
    case 'boolean':
      return 'truth';
    case 'array':
      return 'lines';
    case 'object':
      // A free table of plain values is typed in by line, anything deeper as JSON.
      return isRecord(type.additionalProperties) ? 'pairs' : 'json';
    default:
      return typeof type.maxLength === 'number' && type.maxLength > ONE_LINE
        ? 'long'
        : 'text';
  }
}

/** The unit that a schema's own examples tell of, or those of its choices. */
function unitIn(schema: Schema): Unit | null {
  const choices: unknown[] = Array.isArray(schema.anyOf) ? schema.anyOf : [];
  return choices
    .filter(isRecord)
    .reduce<Unit | null>(
      (found, one) => found ?? unitIn(one),
      unitOf(schema.examples)
    );
}

/** A standard value as it would be typed in; empty for what takes more than a line. */
function standardText(value: unknown, unit: Unit | null): string {
  if (typeof value === 'number' && unit !== null) {
    return written(unit, value);
  }
  return typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
    ? String(value)
    : '';
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.replace(/\s+/g, ' ').trim() : '';
}
