import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';

const POLL_MS = 60_000;

/** More is on its way, and the server waits when nobody asks. */
const SOON_MS = 1000;

/**
 * Something that AWS knows, read now and then while somebody looks at it; what was read stays when it can't be read again, unless it is there no more.
 */
export class Watched<
  T extends { readonly loading: boolean }
> implements IDisposable {
  /**
   * @param read - reads it; whether AWS is to be asked now
   * @param isShown - whether it is seen; default: as long as the browser's tab is
   */
  constructor(
    read: (refresh: boolean) => Promise<T>,
    times: { readonly poll: number; readonly soon: number } = {
      poll: POLL_MS,
      soon: SOON_MS
    },
    isShown: (() => boolean) | null = null
  ) {
    this._read = read;
    this._isShown = isShown ?? (() => true);
    this._soon = times.soon;
    this._poll = new Poll({
      auto: false,
      name: 'hyperpod_jlab:aws',
      factory: () => this._load(),
      frequency: { interval: times.poll, backoff: true, max: 10 * times.poll },
      linger: 0,
      standby: isShown ? () => !isShown() : 'when-hidden'
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
      clearTimeout(this._timer);
      this._poll.dispose();
      Signal.clearData(this);
    }
  }

  /** Somebody looks at it. */
  start(): void {
    if (!this._started && !this.isDisposed) {
      this._started = true;
      void this._poll.start();
    }
  }

  /** Nobody looks at it for now. */
  stop(): void {
    if (this._started && !this.isDisposed) {
      this._started = false;
      clearTimeout(this._timer);
      void this._poll.stop();
    }
  }

  /** Ask AWS now. */
  refresh(): void {
    this._forced = true;
    void this._poll.refresh();
  }

  /** Read again what the server knows. */
  reread(): void {
    void this._poll.refresh();
  }

  /** What is to be read is another thing now: forget what was read. */
  restart(): void {
    this._subject += 1;
    this._value = null;
    this._error = null;
    clearTimeout(this._timer);
    this._changed.emit();
    if (this._started) {
      void this._poll.refresh();
    }
  }

  private async _load(): Promise<void> {
    const refresh = this._forced;
    const subject = this._subject;
    this._forced = false;
    clearTimeout(this._timer);
    try {
      const value = await this._read(refresh);
      if (subject !== this._subject) {
        return;
      }
      this._value = value;
      this._error = null;
      if (value.loading && this._started) {
        this._timer = window.setTimeout(() => this._goOn(), this._soon);
      }
    } catch (reason) {
      const error = ApiError.of(reason);
      if (subject === this._subject) {
        this._error = error;
        if (error.isMissing) {
          this._value = null;
        }
      }
      throw error;
    } finally {
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }

  /** Read what came meanwhile, once the page is seen: the server looks on only for those who ask. */
  private _goOn(): void {
    if (document.hidden || !this._isShown()) {
      this._timer = window.setTimeout(() => this._goOn(), this._soon);
    } else {
      this.reread();
    }
  }

  private readonly _read: (refresh: boolean) => Promise<T>;
  private readonly _isShown: () => boolean;
  private readonly _soon: number;
  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _subject = 0;
  private _value: T | null = null;
  private _error: ApiError | null = null;
  private _started = false;
  private _forced = false;
  private _timer: number | undefined;
}
