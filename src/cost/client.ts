import { HyperPodClient, Schema } from '../api';

/** The usage of clusters in a period, by key and by day. */
export type IUsageReport = Schema<'UsageReport'>;

/** What a run has cost so far. */
export type IRunCost = Schema<'RunCost'>;

/** What a run would cost. */
export type IEstimate = Schema<'Estimate'>;

/** A period may have a million jobs. */
const TIMEOUT_SECONDS = 120;

/**
 * The client of the server extension's route on usage.
 */
export class CostClient {
  constructor(private readonly _client: HyperPodClient) {}

  usage(query: Schema<'UsageQuery'>): Promise<IUsageReport> {
    return this._client.get('usage', {
      query: { ...query },
      timeout: TIMEOUT_SECONDS
    });
  }
}

/** What the rest needs of it; tests give one of their own. */
export type ICostClient = Pick<CostClient, keyof CostClient>;
