import { ApiError } from '../api';
import { Polled } from '../components/polled';
import { IRunClient, IRunMetrics } from '../runs/client';
import { IMetrics, IMetricsClient, ISubject } from './client';

/** AWS has a new value each minute. */
const POLL_MS = 60_000;
/** Measurements come this late at the most; then those of a time that is over are all there. */
const LATE_MS = 10 * 60_000;

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

/**
 * The metrics of a run: of one that is long over they are asked for once, as is a run of which there can be none.
 */
export class RunMetricsModel extends Polled<IRunMetrics> {
  constructor(
    private readonly _client: Pick<IRunClient, 'metrics'>,
    private readonly _runId: string
  ) {
    super(POLL);
  }

  protected override read(): Promise<IRunMetrics> {
    return this._client.metrics(this._runId);
  }

  override start(): void {
    if (!this._isSettled) {
      super.start();
    }
  }

  protected override onAnswer(answer: IRunMetrics | ApiError): void {
    this._isSettled =
      answer instanceof ApiError
        ? answer.code === 'unsupported'
        : Date.now() - Date.parse(answer.whole.end) > LATE_MS;
    if (this._isSettled) {
      this.stop();
    }
  }

  private _isSettled = false;
}
