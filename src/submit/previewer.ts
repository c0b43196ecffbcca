import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { ISubmitClient } from './client';
import { IPreview, ISubmitBody } from './types';

/**
 * Asks for previews, a moment after the last change, one at a time.
 */
export class Previewer implements IDisposable {
  constructor(client: ISubmitClient, delay: number) {
    this._client = client;
    this._delay = delay;
  }

  /** An answer came, or one is waited for. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The newest preview; an older one stays while the next is waited for, or there is none of what is asked. */
  get preview(): IPreview | null {
    return this._preview;
  }

  /** Why there is no preview of what was asked last. */
  get error(): ApiError | null {
    return this._error;
  }

  /** An answer is waited for. */
  get busy(): boolean {
    return this._busy;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this.stop();
      Signal.clearData(this);
    }
  }

  /** Ask soon, with what is there then. */
  ask(body: () => ISubmitBody, delay: number = this._delay): void {
    this.stop();
    if (this._isDisposed) {
      return;
    }
    this._busy = true;
    this._changed.emit();
    this._timer = setTimeout(() => void this._ask(body()), delay);
  }

  /** What was asked is not wanted any more. */
  stop(): void {
    clearTimeout(this._timer);
    this._abort?.abort();
    this._abort = null;
    this._busy = false;
  }

  /** The preview is of something else than what was asked last. */
  get isStale(): boolean {
    return this._isStale;
  }

  /** Nothing can be asked now; the older preview stays to be looked at. */
  hold(): void {
    this.stop();
    this._isStale = true;
    this._error = null;
  }

  private async _ask(body: ISubmitBody): Promise<void> {
    const abort = new AbortController();
    this._abort = abort;
    try {
      const preview = await this._client.preview(body, abort.signal);
      if (!abort.signal.aborted) {
        this._preview = preview;
        this._isStale = false;
        this._error = null;
      }
    } catch (reason) {
      if (!abort.signal.aborted) {
        this._error = ApiError.of(reason);
        this._isStale = true;
      }
    }
    if (!abort.signal.aborted) {
      this._busy = false;
      this._changed.emit();
    }
  }

  private readonly _client: ISubmitClient;
  private readonly _delay: number;
  private readonly _changed = new Signal<this, void>(this);
  private _preview: IPreview | null = null;
  private _isStale = false;
  private _error: ApiError | null = null;
  private _busy = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _abort: AbortController | null = null;
  private _isDisposed = false;
}
