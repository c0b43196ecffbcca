import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';

/**
 * Data that is polled while its widget is visible, less often while requests fail. The last value stays when a request fails,
 * unless the error says that it is gone.
 */
export abstract class Polled<T> implements IDisposable {
  constructor(options: Polled.IOptions) {
    const { interval, name, ...others } = options;
    this._poll = new Poll({
      auto: false,
      name: `hyperpod_jlab:${name}`,
      factory: () => this._load(),
      frequency: { interval, backoff: true, max: 10 * interval },
      standby: 'when-hidden',
      ...others
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

  /** Somebody looks at it: begin to read, or go on. */
  start(): void {
    if (!this._isStarted && !this.isDisposed) {
      this._isStarted = true;
      void this._poll.start();
    }
  }

  /** Nobody looks at it for now. */
  stop(): void {
    if (this._isStarted && !this.isDisposed) {
      this._isStarted = false;
      void this._poll.stop();
    }
  }

  /** Read it again. */
  refresh(): void {
    void this._poll.refresh();
  }

  /** Read it again, and wait for the answer; `error` says why there is none. */
  protected async readNow(): Promise<void> {
    await this._poll.refresh();
    await this._poll.tick.catch(() => undefined);
    if (!this._isStarted && !this.isDisposed) {
      // A poll that was refreshed continues at its interval.
      await this._poll.stop();
    }
  }

  /** Whether the widget is visible. */
  protected get isStarted(): boolean {
    return this._isStarted;
  }

  /** What is to be read is another thing now: an answer that is under way is of no use. */
  protected turnTo({ forget }: { forget: boolean }): void {
    this._turn += 1;
    if (forget) {
      this._value = null;
      this._error = null;
    }
    this._changed.emit();
    if (this._isStarted) {
      void this._poll.refresh();
    }
  }

  /** Ask for it. */
  protected abstract read(): Promise<T>;

  /** A request ended, with a value or an error; listeners of `changed` are called next. */
  protected onAnswer(answer: T | ApiError): void {
    void answer;
  }

  private async _load(): Promise<void> {
    const turn = this._turn;
    this._reading = turn;
    let error: ApiError | null = null;
    try {
      const value = await this.read();
      if (turn === this._turn) {
        this._value = value;
        this._error = null;
        this.onAnswer(value);
      }
    } catch (reason) {
      error = ApiError.of(reason);
      if (turn === this._turn) {
        this._value = error.isMissing ? null : this._value;
        this._error = error;
        this.onAnswer(error);
      }
    }
    if (!this.isDisposed) {
      this._changed.emit();
    }
    // Lumino drops a refresh that comes while another one is under way.
    if (turn !== this._turn && turn === this._reading && this._isStarted) {
      return this._load();
    }
    if (error) {
      throw error;
    }
  }

  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _value: T | null = null;
  private _error: ApiError | null = null;
  private _turn = 0;
  /** The turn that is read, or was read last. */
  private _reading = 0;
  private _isStarted = false;
}

/**
 * A namespace for statics of `Polled`.
 */
export namespace Polled {
  export interface IOptions {
    /** What the poll is called where polls are listed. */
    readonly name: string;
    /** From one reading to the next, in milliseconds. */
    readonly interval: number;
    /** How many readings go on unseen; default: Lumino's. */
    readonly linger?: number;
    /** When it counts as unseen; default: while the browser's tab is hidden. */
    readonly standby?: () => boolean | Poll.Standby;
  }
}
