import { isRecord } from './errors';

/**
 * Readers for the parts of an answer: each gives the value in its type, or throws naming the field.
 *
 * Which fields there are, and of which type, is said by the server's own types (`./types`): a field that the server does
 * not have, or has in another type, is no longer compiled. What really came is looked at all the same.
 */

declare const CLAIMED: unique symbol;

/**
 * A value of an answer that nobody has looked at; the server says that it is a `V`.
 */
export interface IClaim<V> {
  readonly [CLAIMED]: V;
}

/** An object of an answer that nobody has looked into; the server says that it is a `T`. */
export type Wire<T> = { readonly [K in keyof T]-?: IClaim<T[K]> };

/** An object that has a `V` under a name, as the server says. */
type Has<K extends string, V> = { readonly [P in K]: IClaim<V> };

type Maybe<V> = V | null | undefined;

/** Query parameters of a request, by the names of the server. */
export type Query<T> = { readonly [K in keyof T]?: string };

/** The plain object that a value must be. */
export function recordOf(value: unknown, what: string): Record<string, unknown>;
/** The plain object that a value must be, and of which type the server says that it is. */
export function recordOf<T>(value: unknown, what: string): Wire<T>;
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
export function textOf<K extends string>(
  from: Has<K, string>,
  name: K
): string {
  const value: unknown = from[name];
  if (typeof value !== 'string') {
    throw new Error(`${name} is no text`);
  }
  return value;
}

/** The text under a name, or null. */
export function textOrNull<K extends string>(
  from: Has<K, Maybe<string>>,
  name: K
): string | null {
  const value: unknown = from[name];
  return typeof value === 'string' ? value : null;
}

/** The number under a name, which must be there. */
export function numberOf<K extends string>(
  from: Has<K, number>,
  name: K
): number {
  return asNumber(from[name], name);
}

/** The number under a name, or null. */
export function numberOrNull<K extends string>(
  from: Has<K, Maybe<number>>,
  name: K
): number | null {
  const value: unknown = from[name];
  return typeof value === 'number' ? value : null;
}

/** Whether the value under a name is true. */
export function truthOf<K extends string>(
  from: Has<K, Maybe<boolean>>,
  name: K
): boolean {
  const value: unknown = from[name];
  return value === true;
}

/** The list under a name, each item decoded; a missing list is empty. */
export function listOf<T, K extends string>(
  from: Has<K, Maybe<readonly unknown[]>>,
  name: K,
  decode: (item: unknown) => T
): T[] {
  const value: unknown = from[name] ?? [];
  if (!Array.isArray(value)) {
    throw new Error(`${name} is no list`);
  }
  return value.map(item => decode(item));
}

/** The object under a name, decoded; null when there is none. */
export function partOrNull<T, K extends string>(
  from: Has<K, Maybe<object>>,
  name: K,
  decode: (item: unknown) => T
): T | null {
  const value: unknown = from[name] ?? null;
  return value === null ? null : decode(value);
}

/** What is under a name as it came: only where a look at it would cost more than all the rest. */
export function unseenOf<T, K extends keyof T>(from: Wire<T>, name: K): T[K] {
  const value: unknown = from[name] ?? null;
  return value as T[K];
}

/** A list's item that must be text. */
export function asText(value: unknown): string {
  if (typeof value !== 'string') {
    throw new Error('a text is missing');
  }
  return value;
}

/** A value that must be a number. */
export function asNumber(value: unknown, name: string): number {
  if (typeof value !== 'number') {
    throw new Error(`${name} is no number`);
  }
  return value;
}
