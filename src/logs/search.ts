import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { ILogClient } from './client';
import { LogFeed } from './feed';
import { filterOf, literally, LogLevel } from './pattern';
import { ILogHit } from './types';

/** Hits that are asked for at a time. */
const LIMIT = 200;

/**
 * Looks for lines on the server and steps through those that were found.
 */
export class LogSearch implements IDisposable {
  constructor(client: ILogClient, feed: LogFeed) {
    this._client = client;
    this._feed = feed;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What is looked for; empty: nothing. */
  get text(): string {
    return this._text;
  }

  /** What is looked for as a regular expression. */
  get pattern(): string {
    return this.isRegex ? this._text : literally(this._text);
  }

  /** The text is a regular expression. */
  isRegex = false;

  /** Only lines of these levels are looked at; none: all lines. */
  levels: ReadonlySet<LogLevel> = new Set();

  get hits(): readonly ILogHit[] {
    return this._hits;
  }

  /** Which hit is shown; -1: none yet. */
  get at(): number {
    return this._at;
  }

  /** The hit that is shown. */
  get current(): ILogHit | null {
    return this._hits[this._at] ?? null;
  }

  /** There may be more hits than are known. */
  get more(): boolean {
    return this._next !== null;
  }

  get busy(): boolean {
    return this._abort !== null;
  }

  get error(): ApiError | null {
    return this._error;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._abort?.abort();
      Signal.clearData(this);
    }
  }

  /**
   * Look for something.
   *
   * @param text - what
   * @param isShown - whether the first line with it is shown
   */
  async find(text: string, isShown = true): Promise<void> {
    this._abort?.abort();
    this._abort = null;
    this._text = text;
    this._hits = [];
    this._at = -1;
    this._next = null;
    this._error = null;
    if (text !== '' && (await this._load(undefined)) && isShown) {
      await this._show(0);
    }
    this._changed.emit();
  }

  /** Show the next hit; behind the last one comes the first. */
  async forward(): Promise<void> {
    const known = this._at + 1 < this._hits.length;
    if (!known && this._next !== null) {
      await this._load(this._next);
    }
    await this._show(this._at + 1 < this._hits.length ? this._at + 1 : 0);
  }

  /** Show the hit before; before the first one comes the last that is known. */
  async backward(): Promise<void> {
    await this._show(this._at > 0 ? this._at - 1 : this._hits.length - 1);
  }

  private async _show(at: number): Promise<void> {
    const hit = this._hits[at];
    if (hit) {
      this._at = at;
      this._changed.emit();
      await this._feed.goTo(hit.cursor);
    }
  }

  /** Ask until there is a hit or the log is at its end; the server looks through a limited part each time. */
  private async _load(cursor: string | undefined): Promise<boolean> {
    const abort = new AbortController();
    this._abort = abort;
    this._changed.emit();
    try {
      do {
        const found = await this._client.search(
          {
            ...this._feed.request,
            ...filterOf(this.pattern, this.levels),
            cursor,
            limit: LIMIT
          },
          abort.signal
        );
        if (abort.signal.aborted) {
          return false;
        }
        this._hits = [...this._hits, ...found.hits];
        this._next = found.next;
        cursor = found.next ?? undefined;
        if (found.hits.length > 0) {
          return true;
        }
      } while (cursor !== undefined);
    } catch (reason) {
      if (!abort.signal.aborted) {
        this._error = ApiError.of(reason);
      }
    } finally {
      if (this._abort === abort) {
        this._abort = null;
      }
    }
    return false;
  }

  private readonly _client: ILogClient;
  private readonly _feed: LogFeed;
  private readonly _changed = new Signal<this, void>(this);
  private _text = '';
  private _hits: readonly ILogHit[] = [];
  private _at = -1;
  private _next: string | null = null;
  private _abort: AbortController | null = null;
  private _error: ApiError | null = null;
  private _isDisposed = false;
}
