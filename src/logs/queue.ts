import { IDisposable } from '@lumino/disposable';

import { ILogFrame } from './types';

/** The page is drawn at most this often: eyes see no more, and other work goes on between. */
const INTERVAL_MS = 100;

/** A hidden page draws nothing; it only takes in. */
const HIDDEN_INTERVAL_MS = 1000;

interface IWaiting {
  readonly frame: ILogFrame;
  readonly taken: () => void;
}

/**
 * Frames that came in, handed on together before the page is drawn next.
 */
export class FrameQueue implements IDisposable {
  /**
   * @param take - shows frames
   */
  constructor(take: (frames: ILogFrame[]) => void) {
    this._take = take;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this.clear();
  }

  /** Add a frame; `taken` is called once it was handed on. */
  add(frame: ILogFrame, taken: () => void): void {
    if (this._isDisposed) {
      return;
    }
    this._waiting.push({ frame, taken });
    if (this._timer === undefined) {
      this._schedule();
    }
  }

  /** Hand on at once what waits. */
  flush(): void {
    this._cancel();
    const waiting = this._waiting;
    if (waiting.length > 0) {
      this._waiting = [];
      this._last = performance.now();
      this._take(waiting.map(item => item.frame));
      waiting.forEach(item => item.taken());
    }
  }

  /** Forget what waits. */
  clear(): void {
    this._cancel();
    this._waiting = [];
  }

  private _schedule(): void {
    const interval = document.hidden ? HIDDEN_INTERVAL_MS : INTERVAL_MS;
    const wait = Math.max(0, this._last + interval - performance.now());
    this._timer = setTimeout(() => {
      if (document.hidden) {
        this.flush();
      } else {
        this._frame = requestAnimationFrame(() => this.flush());
      }
    }, wait);
  }

  private _cancel(): void {
    clearTimeout(this._timer);
    cancelAnimationFrame(this._frame);
    this._timer = undefined;
  }

  private readonly _take: (frames: ILogFrame[]) => void;
  private _waiting: IWaiting[] = [];
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _frame = 0;
  private _last = 0;
  private _isDisposed = false;
}
