import { HyperPodClient, Schema } from '../api';
import { pathOf } from '../clusters/client';

/** The course of a metric. */
export type IMetric = Schema<'HyperpodMetric'>;

/** What was measured on a HyperPod cluster, or on one of its nodes. */
export type IMetrics = Schema<'HyperpodMetrics'>;

/** What is looked at: a cluster or one of its nodes, over so many seconds. */
export interface ISubject {
  readonly cluster: string;
  readonly node: string | null;
  readonly seconds: number;
}

/**
 * The client of the server extension's route on metrics.
 */
export class MetricsClient {
  constructor(private readonly _client: HyperPodClient) {}

  metrics(subject: ISubject): Promise<IMetrics> {
    const { cluster, node, seconds } = subject;
    return this._client.get(pathOf(cluster, 'metrics'), {
      query: { seconds, node } satisfies Schema<'MetricsQuery'>
    });
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IMetricsClient = Pick<MetricsClient, keyof MetricsClient>;
