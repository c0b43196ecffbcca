import {
  asText,
  listOf,
  numberOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import type * as wire from '../api/types';
import { decodeRow, ITablePage, ITableQuery } from '../clusters/types';
import { agedOf } from './types';

/** How bad an event is, least first. */
export const EVENT_LEVELS = ['info', 'warn', 'error'] as const;
export type EventLevel = (typeof EVENT_LEVELS)[number];

/**
 * Which events are wanted.
 */
export interface IEventChoice {
  /** So bad, or worse. */
  readonly level?: EventLevel;
  /** Of this instance group. */
  readonly group?: string;
  /** Of instances whose ids begin so. */
  readonly node?: string;
}

export interface IEventQuery extends ITableQuery, IEventChoice {}

/**
 * A part of the table of events, and what can be chosen.
 */
export interface IEventPage extends ITablePage {
  readonly groups: readonly string[];
  readonly instances: readonly string[];
}

/**
 * An event with its details.
 */
export interface IEventDetail {
  readonly id: string;
  readonly time: string;
  readonly level: string | null;
  readonly resource: string;
  readonly group: string | null;
  readonly instance: string | null;
  readonly description: string | null;
  readonly reason: string | null;
  /** AWS does not list it any more. */
  readonly journal: boolean;
  /** What AWS tells besides, as it comes. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A part of the table of events from an answer. */
export function decodeEvents(value: unknown): IEventPage {
  const from = recordOf<wire.IHyperpodEvents>(value, 'events');
  return {
    ...agedOf(from),
    rows: listOf(from, 'events', decodeRow),
    next: textOrNull(from, 'next'),
    total: numberOrNull(from, 'total'),
    groups: listOf(from, 'groups', asText),
    instances: listOf(from, 'instances', asText)
  };
}

/** An event with its details from an answer. */
export function decodeEvent(value: unknown): IEventDetail {
  const from = recordOf<wire.IHyperpodEventDetail>(value, 'event');
  return {
    id: textOf(from, 'event_id'),
    time: textOf(from, 'time'),
    level: textOrNull(from, 'level'),
    resource: textOf(from, 'resource'),
    group: textOrNull(from, 'group'),
    instance: textOrNull(from, 'instance'),
    description: textOrNull(from, 'description'),
    reason: textOrNull(from, 'reason'),
    journal: truthOf(from, 'journal'),
    metadata: recordOf(from.metadata, 'metadata')
  };
}
