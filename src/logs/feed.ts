import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { FrameQueue } from './queue';
import { ILogClient, IPageRequest, MAX_PAGE } from './client';
import { ILogHandler } from './socket';
import { ILogPage, ILogRequest } from './types';
import { LogWindow } from './window';

/** Rows of the first page and of each further one. */
const PAGE = 500;

/**
 * What of a run's log is wanted; the run itself is fixed.
 */
export type LogChoice = Omit<ILogRequest, 'runId'>;

/**
 * Fills a window with the log of a run: its end at first, then what comes, or older pages, as the view asks for them.
 */
export class LogFeed implements IDisposable {
  constructor(options: LogFeed.IOptions) {
    this._client = options.client;
    this._request = { runId: options.runId };
    this.window = options.window ?? new LogWindow();
    this._queue = new FrameQueue(frames => {
      const wasEmpty = this.window.length === 0;
      frames.forEach(frame => this.window.append(frame));
      if (wasEmpty) {
        this._stateChanged.emit();
      }
      this._detachWhenFull();
      this._changed.emit();
    });
  }

  /** The rows. */
  readonly window: LogWindow;

  /** Rows came, went or changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Something else of what is shown here is different. */
  get stateChanged(): ISignal<this, void> {
    return this._stateChanged;
  }

  /** A row that the user asked for is in the window. */
  get revealed(): ISignal<this, number> {
    return this._revealed;
  }

  get request(): ILogRequest {
    return this._request;
  }

  /** The view stays at the end. */
  get following(): boolean {
    return this._following;
  }

  /** The window's last row is the newest of the log. */
  get atEnd(): boolean {
    return this._atEnd;
  }

  /** The run has ended and all of its log was read. */
  get ended(): boolean {
    return this._ended;
  }

  /** The run has ended, whatever part of its log is here. */
  get over(): boolean {
    return this._over;
  }

  /** The first page is on its way. */
  get loading(): boolean {
    return this._loading;
  }

  /** Why nothing comes, if so. */
  get error(): ApiError | null {
    return this._error ?? this._pageError;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._generation++;
      this._detach();
      this._queue.dispose();
      Signal.clearData(this);
    }
  }

  /** Show the end of the log and stay there. */
  async follow(): Promise<void> {
    this._following = true;
    this._pageError = null;
    if (this._atEnd && !this._error) {
      this._stateChanged.emit();
      this._changed.emit();
      return;
    }
    await this._restart('backward');
  }

  /** A run that had ended goes on (it was requeued): so does its log, where it stopped. */
  reopen(): void {
    if (this._over) {
      this._over = false;
      if (this._ended) {
        this._ended = false;
        this._attach();
      }
      this._stateChanged.emit();
    }
  }

  /** Request nothing more while not visible; the lines stay. */
  suspend(): void {
    this._suspended = true;
    if (this._live) {
      this._queue.flush();
      this._live.dispose();
      this._live = null;
    }
  }

  /** Go on after `suspend`: at the end of the log where it was followed, else where it stood. */
  async resume(): Promise<void> {
    const wasSuspended = this._suspended;
    this._suspended = false;
    if (!wasSuspended || !this._atEnd || this._ended || this._error) {
      return;
    }
    if (this._following) {
      this._atEnd = false;
      await this.follow();
    } else {
      this._attach();
    }
  }

  /** Let the view stand still. */
  pause(): void {
    if (this._following) {
      this._following = false;
      this._stateChanged.emit();
    }
  }

  /** Show other ranks, or another attempt. */
  async choose(choice: LogChoice): Promise<void> {
    const request = { ...choice, runId: this._request.runId };
    this._request = request;
    this._atEnd = false;
    await this.follow();
    if (this._error && this._request === request) {
      // Lines of another choice would be taken for those of this one.
      this.window.clear();
      this._changed.emit();
    }
  }

  /**
   * Show the log from its first line on.
   *
   * @returns whether it is here
   */
  async toStart(): Promise<boolean> {
    this.pause();
    if (this.window.atStart && !this._loading) {
      return true;
    }
    return this._restart('forward');
  }

  /** Show the line that begins at a cursor, with what is around it. */
  async goTo(cursor: string): Promise<void> {
    this._following = false;
    if (await this._restart('forward', cursor)) {
      await this._reveal();
    }
  }

  /** Show the first line that was written at a time (Unix seconds) or later, with what is around it. */
  async goToTime(since: number): Promise<void> {
    this._following = false;
    if (await this._restart('forward', undefined, since)) {
      await this._reveal();
    }
  }

  /** Page in what lies before the window. */
  loadBackward(): Promise<void> {
    return this._once(async generation => {
      const place = this.window.backward;
      if (!place) {
        return;
      }
      const pages: ILogPage[] = [];
      let { cursor } = place;
      let missing = place.skip + PAGE;
      while (missing > 0) {
        const limit = Math.min(missing, MAX_PAGE);
        const page = await this._page('backward', cursor, limit);
        if (generation !== this._generation) {
          return;
        }
        pages.unshift(page);
        cursor = page.before;
        missing -= limit;
        if (page.at_start) {
          break;
        }
      }
      // What came while this was read belongs behind it.
      this._queue.flush();
      if (this.window.backward?.cursor !== place.cursor) {
        return;
      }
      if (this.window.prepend(pages)) {
        this._detach();
      }
      this._changed.emit();
    });
  }

  /** Page in what lies behind the window; where nothing does, new lines are followed again. */
  loadForward(): Promise<void> {
    return this._once(async generation => {
      const cursor = this.window.after;
      if (this._atEnd || cursor === undefined) {
        return;
      }
      const page = await this._page('forward', cursor);
      if (generation === this._generation) {
        this.window.appendPage(page);
        this._attachWhenAtEnd(page);
        this._changed.emit();
      }
    });
  }

  /** Lead to the window's first line, with what lies before it. */
  private async _reveal(): Promise<void> {
    const number = this.window.first;
    await this.loadBackward();
    this._revealed.emit(number);
  }

  /** Run one at a time; a second call while one runs only waits for that one. */
  private _once(act: (generation: number) => Promise<void>): Promise<void> {
    // While a new window is on its way, nothing may go on from the old one.
    if (this._busy || this._loading || this._isDisposed) {
      return this._busy ?? Promise.resolve();
    }
    const generation = this._generation;
    const done = (error: ApiError | null) => {
      if (generation === this._generation) {
        this._busy = null;
        if (error !== this._pageError) {
          this._pageError = error;
          this._stateChanged.emit();
        }
      }
    };
    this._busy = act(generation).then(
      () => done(null),
      (reason: unknown) => done(ApiError.of(reason))
    );
    return this._busy;
  }

  /** Start the window again with a page. */
  private async _restart(
    direction: IPageRequest['direction'],
    cursor?: string,
    since?: number
  ): Promise<boolean> {
    const generation = ++this._generation;
    this._busy = null;
    this._detach();
    this._error = this._pageError = null;
    this._ended = false;
    this._loading = true;
    this._stateChanged.emit();
    try {
      const page = await this._client.page({
        ...this._request,
        direction,
        cursor,
        since,
        limit: PAGE
      });
      if (generation !== this._generation) {
        return false;
      }
      this._loading = false;
      this.window.reset(page);
      this._attachWhenAtEnd(page);
      this._stateChanged.emit();
      this._changed.emit();
      return true;
    } catch (reason) {
      if (generation === this._generation) {
        this._loading = false;
        this._fail(reason);
      }
      return false;
    }
  }

  private _page(
    direction: IPageRequest['direction'],
    cursor?: string,
    limit = PAGE
  ): Promise<ILogPage> {
    return this._client.page({ ...this._request, direction, cursor, limit });
  }

  private _attachWhenAtEnd(page: ILogPage): void {
    if (page.at_end && !this._live) {
      this._atEnd = true;
      this._attach();
    }
  }

  private _attach(): void {
    if (!this._suspended) {
      this._live = this._client.follow(
        this._request,
        this.window.after,
        this._handler(this._generation)
      );
    }
  }

  private _handler(generation: number): ILogHandler {
    const mine = () => generation === this._generation && this._live !== null;
    return {
      frame: (frame, taken) => {
        if (mine()) {
          this._queue.add(frame, taken);
        }
      },
      end: () => {
        if (mine()) {
          this._queue.flush();
          this._live = null;
          this._ended = true;
          this._over = true;
          this._stateChanged.emit();
        }
      },
      error: error => {
        if (mine()) {
          this._queue.flush();
          this._live = null;
          this._fail(error);
        }
      }
    };
  }

  /** Who reads an old part must not have it taken away by new lines: they wait on the server. */
  private _detachWhenFull(): void {
    if (!this._following && this.window.length >= this.window.capacity * 0.9) {
      this._detach();
      this._stateChanged.emit();
    }
  }

  private _detach(): void {
    this._queue.clear();
    this._live?.dispose();
    this._live = null;
    this._atEnd = false;
    // A reader who returns to the end is notified again.
    this._ended = false;
  }

  private _fail(reason: unknown): void {
    this._error = ApiError.of(reason);
    this._stateChanged.emit();
  }

  private readonly _client: ILogClient;
  private readonly _queue: FrameQueue;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _stateChanged = new Signal<this, void>(this);
  private readonly _revealed = new Signal<this, number>(this);
  private _request: ILogRequest;
  private _live: IDisposable | null = null;
  private _generation = 0;
  private _busy: Promise<void> | null = null;
  private _following = true;
  private _suspended = false;
  private _atEnd = false;
  private _ended = false;
  private _over = false;
  private _loading = false;
  /** Why nothing comes. */
  private _error: ApiError | null = null;
  /** Why the last page could not be read; that new lines come is another matter. */
  private _pageError: ApiError | null = null;
  private _isDisposed = false;
}

export namespace LogFeed {
  export interface IOptions {
    client: ILogClient;
    runId: string;
    window?: LogWindow;
  }
}
