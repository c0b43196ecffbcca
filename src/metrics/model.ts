import { Polled } from '../components/polled';
import { IMetrics, IMetricsClient, ISubject } from './client';

/** AWS has a new value each minute. */
const POLL_MS = 60_000;

const POLL = { name: 'metrics', interval: POLL_MS, linger: 0 };

/**
 * The metrics of a cluster or of a node.
 */
export class MetricsModel extends Polled<IMetrics> {
  constructor(
    private readonly _client: IMetricsClient,
    private _subject: ISubject,
    standby?: () => boolean
  ) {
    super({ ...POLL, ...(standby && { standby }) });
  }

  get subject(): ISubject {
    return this._subject;
  }

  /** Look so many seconds back. */
  setSeconds(seconds: number): void {
    this._subject = { ...this._subject, seconds };
    this.turnTo({ forget: false });
  }

  protected override read(): Promise<IMetrics> {
    return this._client.metrics(this._subject);
  }
}
