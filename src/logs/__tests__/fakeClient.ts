import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { ApiError } from '../../api';
import { ILogClient, IPageRequest, ISearchRequest } from '../client';
import { ILogHandler } from '../socket';
import {
  ILogAttempt,
  ILogHistogram,
  ILogHits,
  ILogPage,
  ILogRequest
} from '../types';
import { block, frame, page } from './fakes';

/** A log of numbered lines; the cursor before line n is `n`. */
export class FakeClient implements ILogClient {
  constructor(size: number) {
    this.size = size;
  }

  size: number;
  readonly connected = true;
  readonly filters = true;
  readonly connectionChanged = new Signal<this, boolean>(this);
  readonly pages: IPageRequest[] = [];
  readonly follows: { request: ILogRequest; cursor?: string }[] = [];
  handler: ILogHandler | null = null;
  failure: ApiError | null = null;
  taken = 0;

  page(request: IPageRequest): Promise<ILogPage> {
    this.pages.push(request);
    if (this.failure) {
      return Promise.reject(this.failure);
    }
    const back = request.direction === 'backward';
    const at = Number(request.cursor ?? (back ? this.size : 0));
    const begin = back ? Math.max(0, at - request.limit) : at;
    const end = back ? at : Math.min(this.size, at + request.limit);
    return Promise.resolve(
      page(String(begin), this.frames(begin, end, 50), {
        at_start: begin === 0,
        at_end: end === this.size
      })
    );
  }

  frames(begin: number, end: number, size: number): ILogPage['frames'] {
    const frames = [];
    for (let at = begin; at < end; at += size) {
      const stop = Math.min(end, at + size);
      const lines = Array.from({ length: stop - at }, (_, n) => `${at + n}`);
      frames.push(frame(String(stop), block(lines)));
    }
    return frames;
  }

  search(request: ISearchRequest): Promise<ILogHits> {
    const begin = Number(request.cursor ?? 0);
    const found: number[] = [];
    for (let at = begin; at < begin + 1000 && at < this.size; at++) {
      if (new RegExp(request.grep ?? '').test(String(at))) {
        found.push(at);
      }
    }
    const next = begin + 1000 < this.size ? String(begin + 1000) : null;
    const hits = found.map(at => ({
      ...block(null),
      time: null,
      line: String(at),
      match: [0, 1] as const,
      cursor: String(at)
    }));
    return Promise.resolve({ hits, next });
  }

  histogramValue: ILogHistogram = {
    begin: null,
    end: null,
    sizes: [],
    matches: [],
    matches_until: null,
    logs: 0,
    logs_total: 0
  };

  histogram(): Promise<ILogHistogram> {
    return Promise.resolve(this.histogramValue);
  }

  attempts: ILogAttempt[] = [];

  streams(): Promise<ILogAttempt[]> {
    return Promise.resolve(this.attempts);
  }

  rawUrl(): string {
    return '';
  }

  follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    this.follows.push({ request, cursor });
    this.handler = handler;
    return new DisposableDelegate(() => {
      if (this.handler === handler) {
        this.handler = null;
      }
    });
  }

  /** The log grows. */
  grow(lines: number): void {
    const begin = this.size;
    this.size += lines;
    this.frames(begin, this.size, 100).forEach(item =>
      this.handler?.frame(item, () => this.taken++)
    );
  }
}
