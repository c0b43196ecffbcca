import { IDisposable } from '@lumino/disposable';

import { ApiError } from '../api';
import { ILogHandler } from '../logs/socket';
import { ILogPage } from '../logs/types';

/**
 * How often CloudWatch is asked, in milliseconds.
 */
export interface IPace {
  /** After new lines. */
  readonly soon: number;
  /** When none came for long. */
  readonly late: number;
  /** When it doesn't answer. */
  readonly trouble: number;
}

const PACE: IPace = { soon: 2000, late: 30_000, trouble: 60_000 };

const SLOWER = 1.5;

/** Looks in a row that may fail before it is given up. */
const PATIENCE = 10;

/** What a server of ours says when it is AWS that fails, or has too many calls. */
const PASSING = ['aws_throttled', 'aws_failed', 'aws_unreachable'];

/**
 * Follows a log by asking for what lies behind a cursor, again and again, ever more seldom while nothing comes. It asks nothing
 * while the browser's page is hidden, nor before what it brought was shown.
 */
export class Follower implements IDisposable {
  /**
   * @param read - reads what lies behind a cursor
   * @param trouble - told why there is no answer for now, or null when there is one again
   */
  constructor(
    private readonly read: (cursor: string) => Promise<ILogPage>,
    private cursor: string,
    private readonly handler: ILogHandler,
    private readonly trouble: (error: ApiError | null) => void,
    private readonly pace: IPace = PACE
  ) {
    this._wait = pace.soon;
    this._schedule(this._wait);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      clearTimeout(this._timer);
      document.removeEventListener('visibilitychange', this._look);
      this._tell(null);
    }
  }

  private _schedule(wait: number): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(this._look, wait);
  }

  private readonly _look = (): void => {
    document.removeEventListener('visibilitychange', this._look);
    if (document.hidden) {
      document.addEventListener('visibilitychange', this._look);
    } else {
      void this._ask();
    }
  };

  private async _ask(): Promise<void> {
    try {
      const page = await this.read(this.cursor);
      if (!this._isDisposed) {
        this._failures = 0;
        this._tell(null);
        this._take(page);
      }
    } catch (reason) {
      if (!this._isDisposed) {
        this._fail(ApiError.of(reason));
      }
    }
  }

  private _take(page: ILogPage): void {
    this.cursor = page.after;
    if (page.frames.length === 0) {
      this._wait = Math.min(this._wait * SLOWER, this.pace.late);
      this._schedule(this._wait);
      return;
    }
    this._wait = this.pace.soon;
    const wait = page.at_end ? this._wait : 0;
    const last = page.frames.length - 1;
    page.frames.forEach((frame, at) =>
      this.handler.frame(frame, () => {
        if (at === last && !this._isDisposed) {
          this._schedule(wait);
        }
      })
    );
  }

  private _fail(error: ApiError): void {
    const passes = error.isUnanswered || PASSING.includes(error.code);
    if (!passes || ++this._failures > PATIENCE) {
      this.dispose();
      this.handler.error(error);
      return;
    }
    this._tell(error);
    this._wait = Math.min(this._wait * 2, this.pace.trouble);
    this._schedule(this._wait);
  }

  private _tell(error: ApiError | null): void {
    if (error !== null || this._troubled) {
      this._troubled = error !== null;
      this.trouble(error);
    }
  }

  private _wait: number;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _failures = 0;
  private _troubled = false;
  private _isDisposed = false;
}
