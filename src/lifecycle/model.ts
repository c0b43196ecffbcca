import { ISignal, Signal } from '@lumino/signaling';

import { IWatched } from '../components/watchingWidget';
import { ILifecycleClient } from './client';
import { ILifecycle } from './types';

const PERIOD_MS = 2000;

/**
 * The progress of this space's lifecycle script: read when visible, and again while it runs.
 */
export class LifecycleModel implements IWatched {
  constructor(client: ILifecycleClient, period = PERIOD_MS) {
    this._client = client;
    this._period = period;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** How far it has come, where there is something to say of it; else null. */
  get value(): ILifecycle | null {
    const value = this._value;
    const isQuiet = value === null || ['none', 'done'].includes(value.state);
    return isQuiet || value.started_at === this._dismissed ? null : value;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this.stop();
    this._isDisposed = true;
    Signal.clearData(this);
  }

  start(): void {
    if (!this._isWatched && !this._isDisposed) {
      this._isWatched = true;
      void this._read();
    }
  }

  stop(): void {
    this._isWatched = false;
    window.clearTimeout(this._timer);
  }

  /** The user knows; the next start of the space is another matter. */
  dismiss(): void {
    this._dismissed = this._value?.started_at ?? null;
    this._changed.emit();
  }

  private async _read(): Promise<void> {
    try {
      this._value = await this._client.read();
    } catch {
      // Whether the server answers the panel's sections say; what was known stays.
    }
    if (!this._isWatched) {
      return;
    }
    this._changed.emit();
    if (this._value?.state === 'running') {
      window.clearTimeout(this._timer);
      this._timer = window.setTimeout(() => void this._read(), this._period);
    }
  }

  private readonly _client: ILifecycleClient;
  private readonly _period: number;
  private readonly _changed = new Signal<this, void>(this);
  private _value: ILifecycle | null = null;
  /** When what the user knows of began; not null, for that is a status without a time. */
  private _dismissed: string | null | undefined = undefined;
  private _timer: number | undefined;
  private _isWatched = false;
  private _isDisposed = false;
}
