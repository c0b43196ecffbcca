import { IDisposable } from '@lumino/disposable';

/** How often the clock is looked at. */
const TICK_MS = 15_000;

/** Browsers let the timers of a hidden page run once a minute: only a longer pause is sleep. */
const SLEPT_MS = 90_000;

/**
 * Tells when the machine has slept or the network has come back, after which a connection that looks open may be dead.
 */
export class WakeDetector implements IDisposable {
  constructor(awake: () => void) {
    this._awake = awake;
    this._last = Date.now();
    this._timer = setInterval(this._look, TICK_MS);
    window.addEventListener('online', this._awake);
    document.addEventListener('visibilitychange', this._look);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      clearInterval(this._timer);
      window.removeEventListener('online', this._awake);
      document.removeEventListener('visibilitychange', this._look);
    }
  }

  private readonly _look = (): void => {
    const now = Date.now();
    const slept = now - this._last > SLEPT_MS;
    this._last = now;
    if (slept) {
      this._awake();
    }
  };

  private readonly _awake: () => void;
  private readonly _timer: ReturnType<typeof setInterval>;
  private _last: number;
  private _isDisposed = false;
}
