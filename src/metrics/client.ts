import { URLExt } from '@jupyterlab/coreutils';

import {
  asText,
  HyperPodClient,
  listOf,
  numberOf,
  Query,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';

/** The value of a period, and when that began (Unix milliseconds). */
export interface IPoint {
  readonly time: number;
  readonly value: number;
}

/** The course of a metric. */
export interface IMetric {
  readonly name: string;
  readonly unit: string;
  readonly last: number;
  readonly mean: number;
  readonly lowest: number;
  readonly highest: number;
  readonly points: readonly IPoint[];
}

/** What was measured on a HyperPod cluster, or on one of its nodes. */
export interface IMetrics {
  readonly node: string | null;
  /** `CloudWatch` or `Prometheus`. */
  readonly source: string;
  /** Begin and end (Unix milliseconds), and the milliseconds of a period. */
  readonly begin: number;
  readonly end: number;
  readonly period: number;
  readonly metrics: readonly IMetric[];
  readonly notes: readonly string[];
}

/** What was measured on a run's nodes: the mean over them, and each. */
export interface IRunMetrics {
  readonly whole: IMetrics;
  readonly nodes: readonly IMetrics[];
}

/** What is looked at: a cluster or one of its nodes, over so many seconds. */
export interface ISubject {
  readonly cluster: string;
  readonly node: string | null;
  readonly seconds: number;
}

/**
 * Asks the server for metrics; tests give one of their own.
 */
export interface IMetricsClient {
  metrics(subject: ISubject): Promise<IMetrics>;
}

/**
 * Asks the server for the metrics of runs.
 */
export interface IRunMetricsClient {
  metrics(runId: string): Promise<IRunMetrics>;
}

/**
 * The client of the server extension's route on metrics.
 */
export class MetricsClient implements IMetricsClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  metrics(subject: ISubject): Promise<IMetrics> {
    const { cluster, node, seconds } = subject;
    return this._client.get(
      URLExt.join('hyperpod', encodeURIComponent(cluster), 'metrics'),
      decodeMetrics,
      {
        query: {
          seconds: String(seconds),
          node: node ?? undefined
        } satisfies Query<wire.IMetricsQuery>
      }
    );
  }

  private readonly _client: HyperPodClient;
}

/** What the server answers. */
export function decodeMetrics(value: unknown): IMetrics {
  const from = recordOf<wire.IHyperpodMetrics>(value, 'metrics');
  return {
    node: textOrNull(from, 'node'),
    source: textOf(from, 'source'),
    begin: Date.parse(textOf(from, 'begin')),
    end: Date.parse(textOf(from, 'end')),
    period: numberOf(from, 'period_s') * 1000,
    metrics: listOf(from, 'metrics', decodeMetric),
    notes: listOf(from, 'notes', asText)
  };
}

/** What the server answers of a run. */
export function decodeRunMetrics(value: unknown): IRunMetrics {
  const from = recordOf<wire.IRunMetrics>(value, 'metrics of a run');
  return {
    whole: decodeMetrics(from.whole),
    nodes: listOf(from, 'nodes', decodeMetrics)
  };
}

function decodeMetric(value: unknown): IMetric {
  const from = recordOf<wire.IHyperpodMetric>(value, 'metric');
  return {
    name: textOf(from, 'name'),
    unit: textOf(from, 'unit'),
    last: numberOf(from, 'last'),
    mean: numberOf(from, 'mean'),
    lowest: numberOf(from, 'lowest'),
    highest: numberOf(from, 'highest'),
    points: listOf(from, 'points', decodePoint)
  };
}

function decodePoint(value: unknown): IPoint {
  const from = recordOf<wire.IMetricPoint>(value, 'point');
  return {
    time: Date.parse(textOf(from, 'time')),
    value: numberOf(from, 'value')
  };
}
