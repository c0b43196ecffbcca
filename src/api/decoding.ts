import { isRecord } from './errors';

/**
 * Readers for the parts of an answer: each gives the value in its type, or throws naming the field.
 */

/** The plain object that a value must be. */
export function recordOf(
  value: unknown,
  what: string
): Record<string, unknown> {
  if (!isRecord(value)) {
    throw new Error(`${what} is no object`);
  }
  return value;
}

/** The text under a name, which must be there. */
export function textOf(from: Record<string, unknown>, name: string): string {
  const value = from[name];
  if (typeof value !== 'string') {
    throw new Error(`${name} is no text`);
  }
  return value;
}

/** The text under a name, or null. */
export function textOrNull(
  from: Record<string, unknown>,
  name: string
): string | null {
  const value = from[name];
  return typeof value === 'string' ? value : null;
}

/** The number under a name, which must be there. */
export function numberOf(from: Record<string, unknown>, name: string): number {
  const value = from[name];
  if (typeof value !== 'number') {
    throw new Error(`${name} is no number`);
  }
  return value;
}

/** The number under a name, or null. */
export function numberOrNull(
  from: Record<string, unknown>,
  name: string
): number | null {
  const value = from[name];
  return typeof value === 'number' ? value : null;
}

/** The list under a name, each item decoded; a missing list is empty. */
export function listOf<T>(
  from: Record<string, unknown>,
  name: string,
  decode: (item: unknown) => T
): T[] {
  const value = from[name] ?? [];
  if (!Array.isArray(value)) {
    throw new Error(`${name} is no list`);
  }
  return value.map(item => decode(item));
}

/** A list's item that must be text. */
export function asText(value: unknown): string {
  if (typeof value !== 'string') {
    throw new Error('a text is missing');
  }
  return value;
}
