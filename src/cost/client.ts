import { HyperPodClient, Schema } from '../api';

/** The usage of clusters in a period, by key and by day. */
export type IUsageReport = Schema<'UsageReport'>;

/** What a run has cost so far. */
export type IRunCost = Schema<'RunCost'>;

/** What a run would cost. */
export type IEstimate = Schema<'Estimate'>;

/** The bill of AWS for a cluster beside our own count. */
export type IBill = Schema<'ComparedBill'>;

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

  /** The bill, if AWS was asked in the last hours. */
  bill(cluster: string): Promise<IBill> {
    return this._client.get(billPath(cluster), { timeout: TIMEOUT_SECONDS });
  }

  /** Ask AWS for the bill, which costs money. */
  askForBill(cluster: string): Promise<IBill> {
    const body: Schema<'BillRequest'> = { ask: true, refresh: true };
    return this._client.post(billPath(cluster), body, {
      timeout: TIMEOUT_SECONDS
    });
  }
}

function billPath(cluster: string): string {
  return `clusters/${encodeURIComponent(cluster)}/bill`;
}

/** What the rest needs of it; tests give one of their own. */
export type ICostClient = Pick<CostClient, keyof CostClient>;
