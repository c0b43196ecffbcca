import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import {
  IMetrics,
  IMetricsClient,
  IRunMetrics,
  IRunMetricsClient,
  ISubject
} from './client';

/** AWS has a new value each minute. */
const POLL_MS = 60_000;
/** Measurements come this late at the most; then those of a time that is over are all there. */
const LATE_MS = 10 * 60_000;

/**
 * Something that is read again each minute while somebody looks; what was read stays when it can't be read again.
 */
abstract class Looked<T> implements IDisposable {
  constructor() {
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

  /** What was read last; null before that. */
  get value(): T | null {
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
    if (!this.isDisposed && !this._settled) {
      void this._poll.start();
    }
  }

  /** Nobody looks for now. */
  stop(): void {
    if (!this.isDisposed) {
      void this._poll.stop();
    }
  }

  /** Read again. */
  refresh(): void {
    void this._poll.refresh();
  }

  /** Something else is wanted: an answer that is under way is of no use. */
  protected askAnew(): void {
    this._turn += 1;
    this._changed.emit();
    this.refresh();
  }

  /** Asks the server. */
  protected abstract read(): Promise<T>;

  /** Whether an answer stays as it is, so that nothing has to be asked again. */
  protected isSettled(found: T | ApiError): boolean {
    void found;
    return false;
  }

  private async _load(): Promise<void> {
    const turn = this._turn;
    try {
      const found = await this.read();
      if (turn === this._turn) {
        this._value = found;
        this._error = null;
        this._settle(found);
      }
    } catch (reason) {
      this._error = ApiError.of(reason);
      this._settle(this._error);
      throw this._error;
    } finally {
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }

  private _settle(found: T | ApiError): void {
    this._settled = this.isSettled(found);
    if (this._settled) {
      this.stop();
    }
  }

  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _value: T | null = null;
  private _error: ApiError | null = null;
  private _turn = 0;
  private _settled = false;
}

/**
 * The metrics of a cluster or of a node.
 */
export class MetricsModel extends Looked<IMetrics> {
  constructor(
    private readonly _client: IMetricsClient,
    private _subject: ISubject
  ) {
    super();
  }

  get subject(): ISubject {
    return this._subject;
  }

  /** Look so many seconds back. */
  setSeconds(seconds: number): void {
    this._subject = { ...this._subject, seconds };
    this.askAnew();
  }

  protected override read(): Promise<IMetrics> {
    return this._client.metrics(this._subject);
  }
}

/**
 * The metrics of a run: of one that is long over they are asked for once, as is a run of which there can be none.
 */
export class RunMetricsModel extends Looked<IRunMetrics> {
  constructor(
    private readonly _client: IRunMetricsClient,
    private readonly _runId: string
  ) {
    super();
  }

  protected override read(): Promise<IRunMetrics> {
    return this._client.metrics(this._runId);
  }

  protected override isSettled(found: IRunMetrics | ApiError): boolean {
    return found instanceof ApiError
      ? found.code === 'unsupported'
      : Date.now() - found.whole.end > LATE_MS;
  }
}
