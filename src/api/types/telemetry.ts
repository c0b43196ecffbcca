/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { ILogFrame, ILogHit } from './logs';

/** A log that a cluster's node, or a check of the cluster, has written. */
export interface IHyperpodLog {
  /** AWS' name for it. */
  readonly stream: string;
  /** When its last line was written (Unix seconds; AWS says it with a delay of up to an hour), or null. */
  readonly last_at: string | null;
  readonly kind: string;
  readonly instance_group: string | null;
  readonly instance: string | null;
}

/** A line of a node's log. */
export interface IHyperpodLogLine {
  /** When it was written. */
  readonly time: string;
  /** Its text. */
  readonly line: string;
  /** Where to go on behind it, in all logs that were asked for. */
  readonly cursor: string;
  readonly stream: string;
  readonly kind: string;
}

/** Lines in the order of time, and the cursor to ask on from: null where there was no line yet. There may be `more` behind it now. */
export interface IHyperpodLogLines {
  readonly lines: readonly IHyperpodLogLine[];
  readonly cursor: string | null;
  readonly more: boolean;
}

/** Logs of a cluster, those that were written last first. There may be `more`. AWS tells when one was written with a delay of up to an hour. */
export interface IHyperpodLogs {
  readonly logs: readonly IHyperpodLog[];
  readonly more: boolean;
}

/** The course of a metric over time. */
export interface IHyperpodMetric {
  /** Begin of each period and the value in it, in the order of time; periods without a value are left out. */
  readonly points: readonly IMetricPoint[];
  readonly name: string;
  readonly unit: 'percent' | 'celsius' | 'bytes/s' | 'packets/s' | 'count';
  readonly meaning: string;
  readonly mean: number;
  readonly last: number;
  readonly lowest: number;
  readonly highest: number;
}

/** What was measured on a cluster, or on one of its nodes. */
export interface IHyperpodMetrics {
  /** Name of the cluster. */
  readonly cluster: string;
  /** Instance id of the node, or of a run's node its name in the scheduler; null: the whole cluster, or all nodes of a run. */
  readonly node: string | null;
  /** Where from. */
  readonly source: 'CloudWatch' | 'Prometheus';
  /** Names of the metrics that could be there and have no value. */
  readonly missing: readonly string[];
  /** What there is to say. */
  readonly notes: readonly string[];
  readonly begin: string;
  readonly end: string;
  readonly period_s: number;
  readonly metrics: readonly IHyperpodMetric[];
}

/** A log of a node. */
export interface IHyperpodNodeLog {
  readonly stream: string;
  readonly kind: string;
}

/** The logs of a node. */
export interface IHyperpodNodeLogs {
  readonly logs: readonly IHyperpodNodeLog[];
}

/** The most important metrics of each node. */
export interface IHyperpodNodeMetrics {
  readonly nodes: readonly IHyperpodMetrics[];
}

/** The value of a period, and when that began. */
export interface IMetricPoint {
  readonly time: string;
  readonly value: number;
}

/** Which time, and which node. */
export interface IMetricsQuery {
  /** How long to look back. */
  readonly seconds?: number;
  /** Only this node: its instance id or its name in Kubernetes. */
  readonly node?: string | null;
}

/** Which lines: of a node, or of logs by their names. */
export interface INodeLinesQuery {
  /** The node: its instance id, or its name in Slurm or Kubernetes. */
  readonly node?: string | null;
  /** Only this log of the node. */
  readonly log?: 'lifecycle' | 'health' | null;
  /** Instead of a node's logs these; in a query several times, or once with commas. */
  readonly streams?: readonly string[] | null;
  /** At most so many lines: the last ones, or with `since` or `cursor` the next ones. */
  readonly limit?: number;
  /** Begin at this time: Unix seconds, or ISO 8601. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
}

/** Hits, as in a run's log, the cursor to search on from (null when all was searched), and how often CloudWatch was asked for them. */
export interface INodeLogHits {
  readonly hits: readonly ILogHit[];
  readonly next: string | null;
  readonly calls: number;
}

/** A page, as of a run's log: a block's `node_rank` is the number of its log in `streams`. `calls` says how often CloudWatch was asked for them. */
export interface INodeLogPage {
  readonly frames: readonly ILogFrame[];
  readonly before: string;
  readonly after: string;
  readonly at_start: boolean;
  readonly at_end: boolean;
  readonly calls: number;
}

/** How many logs. */
export interface INodeLogsQuery {
  /** At most so many. */
  readonly limit?: number;
  /** Only those of this kind; then AWS lists all of them. */
  readonly kind?: 'lifecycle' | 'health' | 'deep-health-check' | null;
}

/** Which time, and how many nodes. */
export interface INodeMetricsQuery {
  /** How long to look back. */
  readonly seconds?: number;
  /** At most so many nodes. */
  readonly limit?: number;
}

/** Which page of which logs. */
export interface INodePageQuery {
  /** The logs, by AWS' names; in a query several times, or once with commas. */
  readonly streams: readonly string[];
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Before the cursor (or the end), or from the cursor (or the start) on. */
  readonly direction?: 'backward' | 'forward';
  /** At most so many lines. */
  readonly limit?: number;
}

/** What to search in which logs, and from where on. */
export interface INodeSearchQuery {
  /** The logs, by AWS' names; in a query several times, or once with commas. */
  readonly streams: readonly string[];
  /** Go on from here. */
  readonly cursor?: string | null;
  /** The regular expression. */
  readonly grep: string;
  /** Whether upper and lower case are the same to it. */
  readonly ignore_case?: boolean;
  /** At most so many hits. */
  readonly limit?: number;
}
