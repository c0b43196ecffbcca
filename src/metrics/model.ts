import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IMetrics, IMetricsClient, ISubject } from './client';

/** CloudWatch has a new value each minute. */
const POLL_MS = 60_000;

/**
 * The metrics that a page shows, read again each minute while somebody looks; what was read stays when it can't be read again.
 */
export class MetricsModel implements IDisposable {
  constructor(
    private readonly _client: IMetricsClient,
    private _subject: ISubject
  ) {
    this._poll = new Poll({
      auto: false,
      name: 'hyperpod_jlab:metrics',
      factory: () => this._load(),
      frequency: { interval: POLL_MS, backoff: true, max: 10 * POLL_MS },
      linger: 0,
      standby: 'when-hidden'
    });
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get subject(): ISubject {
    return this._subject;
  }

  /** What was read last; null before that. */
  get value(): IMetrics | null {
    return this._value;
  }

  /** Why it can't be read now, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._poll.dispose();
      Signal.clearData(this);
    }
  }

  /** Somebody looks. */
  start(): void {
    if (!this.isDisposed) {
      void this._poll.start();
    }
  }

  /** Nobody looks for now. */
  stop(): void {
    if (!this.isDisposed) {
      void this._poll.stop();
    }
  }

  /** Look so many seconds back. */
  setSeconds(seconds: number): void {
    this._subject = { ...this._subject, seconds };
    this._changed.emit();
    this.refresh();
  }

  /** Read again. */
  refresh(): void {
    void this._poll.refresh();
  }

  private async _load(): Promise<void> {
    const subject = this._subject;
    try {
      const found = await this._client.metrics(subject);
      if (subject === this._subject) {
        this._value = found;
        this._error = null;
      }
    } catch (reason) {
      this._error = ApiError.of(reason);
      throw this._error;
    } finally {
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }

  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _value: IMetrics | null = null;
  private _error: ApiError | null = null;
}
