import type { Schema } from '../api';
import { ICluster, ITablePage, ITableQuery } from '../clusters/types';

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

/** An event with its details. */
export type IEventDetail = Schema<'HyperpodEventDetail'>;

/** Whether AWS records a cluster's events: only with continuous provisioning. */
export function hasEvents(cluster: ICluster | null): boolean {
  return cluster?.hyperpod?.provisioning === 'Continuous';
}
