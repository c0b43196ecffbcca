import type { Schema } from '../api';
import type { components } from '../api/generated/openapi';

type Name = keyof components['schemas'];

/** As much of JSON Schema as the server's document uses. */
interface ISchema {
  readonly $ref?: string;
  readonly anyOf?: readonly ISchema[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly type?: string;
  readonly items?: ISchema;
  readonly properties?: Readonly<Record<string, ISchema>>;
  readonly required?: readonly string[];
}

const { schemas } = jest.requireActual<{
  components: Readonly<Record<'schemas', Readonly<Record<string, ISchema>>>>;
}>('../api/generated/openapi.json').components;

const COMPONENTS = '#/components/schemas/';

/**
 * An answer of the server with these parts. What it must have besides is null, empty or nought; a part that the server
 * does not know is an error.
 */
export function answerOf<K extends Name>(
  name: K,
  parts: unknown = {}
): Schema<K> {
  return filled({ $ref: COMPONENTS + name }, parts, name) as Schema<K>;
}

function filled(schema: ISchema, value: unknown, at: string): unknown {
  const { anyOf, enum: words, items, properties } = resolved(schema);
  if (anyOf) {
    const fitting = anyOf.map(resolved).find(one => fits(one, value));
    return fitting ? filled(fitting, value, at) : value;
  }
  if (words && !words.includes(value)) {
    throw new Error(`${at} can’t be ${String(value)}`);
  }
  if (items && Array.isArray(value)) {
    return value.map((item, index) => filled(items, item, `${at}[${index}]`));
  }
  return properties && typeof value === 'object' && value !== null
    ? filledObject(resolved(schema), { ...value }, at)
    : value;
}

function filledObject(
  { properties = {}, required = [] }: ISchema,
  parts: Record<string, unknown>,
  at: string
): Record<string, unknown> {
  for (const name of required) {
    if (parts[name] === undefined) {
      parts[name] = simplest(properties[name]);
    }
  }
  for (const [name, part] of Object.entries(parts)) {
    if (part === undefined) {
      continue;
    }
    if (!(name in properties)) {
      throw new Error(`${at} has no ${name}`);
    }
    parts[name] = filled(properties[name], part, `${at}.${name}`);
  }
  return parts;
}

/** Whether a value is of a schema's kind, by which one of several is chosen. */
function fits({ properties, type }: ISchema, value: unknown): boolean {
  if (Array.isArray(value)) {
    return type === 'array';
  }
  return typeof value === 'object' && value !== null && Boolean(properties);
}

function simplest(schema: ISchema): unknown {
  const {
    anyOf,
    const: only,
    enum: words,
    properties,
    type
  } = resolved(schema);
  if (anyOf) {
    return anyOf.some(one => one.type === 'null') ? null : simplest(anyOf[0]);
  }
  switch (type) {
    case 'array':
      return [];
    case 'object':
      return properties ? filled(schema, {}, '') : {};
    case 'string':
      return only ?? words?.[0] ?? '';
    case 'boolean':
      return false;
    default:
      return 0;
  }
}

function resolved(schema: ISchema): ISchema {
  return schema.$ref ? schemas[schema.$ref.slice(COMPONENTS.length)] : schema;
}
