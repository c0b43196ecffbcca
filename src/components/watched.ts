import { ApiError } from '../api';
import { Polled } from './polled';

const POLL_MS = 60_000;

/** More rows are loading, and the server pauses while no client asks. */
const SOON_MS = 1000;

/**
 * Something that AWS knows, and that the server may still be reading: then it is read again soon.
 */
export class Watched<
  T extends { readonly loading: boolean }
> extends Polled<T> {
  /**
   * @param read - reads it; whether AWS is to be asked now
   * @param isShown - whether it is seen; default: as long as the browser's tab is
   */
  constructor(
    read: (refresh: boolean) => Promise<T>,
    times: Watched.ITimes = { poll: POLL_MS, soon: SOON_MS },
    isShown: (() => boolean) | null = null
  ) {
    super({
      name: 'aws',
      interval: times.poll,
      linger: 0,
      ...(isShown && { standby: () => !isShown() })
    });
    this._read = read;
    this._isShown = isShown ?? (() => true);
    this._soon = times.soon;
  }

  override dispose(): void {
    clearTimeout(this._timer);
    super.dispose();
  }

  override stop(): void {
    clearTimeout(this._timer);
    super.stop();
  }

  /** Ask AWS now. */
  override refresh(): void {
    this._forced = true;
    super.refresh();
  }

  /** Ask AWS now, and wait for the answer. */
  async refreshNow(): Promise<void> {
    this._forced = true;
    await this.readNow();
  }

  /** Read again what the server knows. */
  reread(): void {
    super.refresh();
  }

  /** What is to be read is another thing now: forget what was read. */
  restart(): void {
    clearTimeout(this._timer);
    this.turnTo({ forget: true });
  }

  protected override read(): Promise<T> {
    const refresh = this._forced;
    this._forced = false;
    clearTimeout(this._timer);
    return this._read(refresh);
  }

  protected override onAnswer(answer: T | ApiError): void {
    if (!(answer instanceof ApiError) && answer.loading && this.isStarted) {
      this._timer = window.setTimeout(() => this._goOn(), this._soon);
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
  private _forced = false;
  private _timer: number | undefined;
}

/**
 * A namespace for statics of `Watched`.
 */
export namespace Watched {
  /** Milliseconds from one reading to the next, and while more is on its way. */
  export interface ITimes {
    readonly poll: number;
    readonly soon: number;
  }
}
