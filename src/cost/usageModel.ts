import { ApiError, Schema } from '../api';
import { Polled } from '../components/polled';
import type { ICostClient, IUsageReport } from './client';

/** As a month of a large cluster is counted anew each time. */
const POLL_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

/** What usage is summed up by. */
export type By = IUsageReport['by'];

/**
 * What is counted.
 */
export interface IUsageChoice {
  readonly by: By;
  /** Today and the days before, in UTC. */
  readonly days: number;
  /** Null: all that are configured. */
  readonly cluster: string | null;
}

/**
 * The usage of clusters. It is counted again every five minutes while it is seen.
 */
export class UsageModel extends Polled<IUsageReport> {
  constructor(
    private readonly _client: Pick<ICostClient, 'usage'>,
    private _choice: IUsageChoice = { by: 'user', days: 30, cluster: null }
  ) {
    super({ name: 'usage', interval: POLL_MS, linger: 0 });
  }

  get choice(): IUsageChoice {
    return this._choice;
  }

  /** The report; that of the choice before while the next one is counted. */
  get report(): IUsageReport | null {
    return this.isBusy || this.error === null || this._isOfChoice
      ? this.value
      : null;
  }

  /** Another choice is being counted. */
  get isBusy(): boolean {
    return this._answered !== this._choice;
  }

  /** Count something else. */
  choose(part: Partial<IUsageChoice>): void {
    this._choice = { ...this._choice, ...part };
    this.turnTo({ forget: false });
  }

  override refresh(): void {
    this._countedAt = 0;
    super.refresh();
  }

  protected override async read(): Promise<IUsageReport> {
    // A page may be shown and hidden often.
    const isYoung = Date.now() - this._countedAt < POLL_MS / 2;
    if (this.value !== null && isYoung && !this.isBusy && this._isOfChoice) {
      return this.value;
    }
    const { by, cluster, days } = this._choice;
    const today = Math.floor(Date.now() / DAY_MS);
    const query: Schema<'UsageQuery'> = {
      by,
      begin: new Date((today - days + 1) * DAY_MS).toISOString(),
      // An empty list would be a cluster without a name.
      ...(cluster !== null && { cluster: [cluster] })
    };
    const report = await this._client.usage(query);
    this._countedAt = Date.now();
    return report;
  }

  protected override onAnswer(answer: IUsageReport | ApiError): void {
    this._isOfChoice =
      !(answer instanceof ApiError) || (this._isOfChoice && !this.isBusy);
    this._answered = this._choice;
  }

  private _answered: IUsageChoice | null = null;
  /** Whether the newest report is of the newest choice. */
  private _isOfChoice = false;
  private _countedAt = 0;
}
