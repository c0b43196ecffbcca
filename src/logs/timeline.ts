import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ILogClient } from './client';
import { LogFeed } from './feed';
import { LEVELS } from './pattern';
import { ILogHistogram } from './types';

/** Bounds in ms of the time between two requests while lines come: the server reads the whole log for each. */
const MIN_INTERVAL_MS = 5_000;
const MAX_INTERVAL_MS = 60_000;

/** The time between two requests is this many times that of the last one. */
const REST = 20;

/**
 * How much of a log was written when, and when its errors were.
 */
export class LogTimeline implements IDisposable {
  constructor(client: ILogClient, feed: LogFeed) {
    this._client = client;
    this._feed = feed;
    feed.stateChanged.connect(this._onState, this);
    feed.changed.connect(this._onLines, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Null before it is known, or where times are not. */
  get histogram(): ILogHistogram | null {
    return this._histogram;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._feed.stateChanged.disconnect(this._onState, this);
      this._feed.changed.disconnect(this._onLines, this);
      Signal.clearData(this);
    }
  }

  /** Ask for it, unless it is of the same lines and fresh. */
  private async _load(key: string): Promise<void> {
    this._key = key;
    this._askedAt = performance.now();
    const request = { ...this._feed.request, grep: LEVELS.error };
    try {
      const found = await this._client.histogram?.(request);
      const took = performance.now() - this._askedAt;
      this._interval = Math.min(
        Math.max(REST * took, MIN_INTERVAL_MS),
        MAX_INTERVAL_MS
      );
      if (this._key === key && !this._isDisposed && found) {
        this._histogram = found.begin === null ? null : found;
        this._changed.emit();
      }
    } catch {
      // The log can be read without it; the feed tells what is wrong.
    }
  }

  private _onState(): void {
    const { loading, over, request } = this._feed;
    const { attempt, nodeLogs, ranks } = request;
    const key = JSON.stringify([attempt, nodeLogs, ranks, over]);
    if (!loading && key !== this._key && this._client.histogram) {
      void this._load(key);
    }
  }

  private _onLines(): void {
    const isOld = performance.now() - this._askedAt > this._interval;
    if (this._feed.following && isOld && this._client.histogram) {
      void this._load(this._key);
    }
  }

  private readonly _client: ILogClient;
  private readonly _feed: LogFeed;
  private readonly _changed = new Signal<this, void>(this);
  private _histogram: ILogHistogram | null = null;
  private _key = '';
  private _askedAt = 0;
  private _interval = MIN_INTERVAL_MS;
  private _isDisposed = false;
}
