import { Event } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, NETWORK_ERROR } from '../api';
import { IRunClient, RunAction } from './client';
import { IRun, isEnded } from './types';

/** The schema of the server's events on runs. */
export const RUN_EVENT = 'https://hyperpod-jlab.dev/events/run/v1';

/** Runs of the list's first page. */
const LIMIT = 50;

/** Events say what changes; this only mends what they missed. */
const POLL_MS = 60_000;

/** Events that come together are answered together. */
const GATHER_MS = 150;

/**
 * A run came into another state.
 */
export interface IRunChange {
  readonly run: IRun;
  /** Its state before; null when it wasn't known. */
  readonly before: string | null;
}

/**
 * The runs that this page knows, newest first, kept in step with the server by its events.
 */
export class RunsModel implements IDisposable {
  constructor(options: RunsModel.IOptions) {
    this._client = options.client;
    this._events = options.events ?? null;
    this._events?.connect(this._onEvent, this);
    this._poll = new Poll({
      auto: false,
      name: 'hyperpod_jlab:runs',
      factory: () => this._load(),
      frequency: {
        interval: options.interval ?? POLL_MS,
        backoff: true,
        max: 10 * POLL_MS
      },
      standby: 'when-hidden'
    });
  }

  /** The list or a run in it changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** A run came into another state. */
  get stateChanged(): ISignal<this, IRunChange> {
    return this._stateChanged;
  }

  /** The runs, newest first. */
  get runs(): readonly IRun[] {
    return this._runs;
  }

  /** The list was read at least once. */
  get loaded(): boolean {
    return this._loaded;
  }

  /** There are older runs. */
  get more(): boolean {
    return this._next !== null;
  }

  /** Why the list can't be read, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  /** Runs that wait or run. */
  get active(): readonly IRun[] {
    return this._runs.filter(
      run => !isEnded(run.state) && run.state !== 'unknown'
    );
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._events?.disconnect(this._onEvent, this);
      clearTimeout(this._timer);
      this._poll.dispose();
      Signal.clearData(this);
    }
  }

  /** Begin to keep the list; it costs nothing before. */
  start(): void {
    if (!this._started && !this._isDisposed) {
      this._started = true;
      void this._poll.start();
    }
  }

  /** Read the list anew. */
  async refresh(): Promise<void> {
    this._started = true;
    await this._poll.refresh();
    await this._poll.tick.catch(() => undefined);
  }

  /** Read older runs too. */
  async loadMore(): Promise<void> {
    if (this._next !== null) {
      const cursor = this._next;
      const page = await this._client.list({ limit: LIMIT, cursor });
      this._next = page.next;
      this._take(page.runs);
    }
  }

  /** A run that is known; undefined else. */
  find(runId: string): IRun | undefined {
    return this._known.get(runId);
  }

  /** Ask the server for a run. */
  async get(runId: string): Promise<IRun> {
    return this._read(runId, this._client.get(runId));
  }

  /** Read the children of an array. */
  children(runId: string): Promise<readonly IRun[]> {
    return this._client.children(runId);
  }

  /** Do something to a run. */
  async act(runId: string, action: RunAction): Promise<IRun> {
    return this._read(runId, this._client.act(runId, action));
  }

  /** Take in a run that was asked for, or that it is gone. */
  private async _read(runId: string, answer: Promise<IRun>): Promise<IRun> {
    try {
      const run = await answer;
      this._take([run]);
      return run;
    } catch (reason) {
      if (isMissing(reason) && this._known.delete(runId)) {
        this._take([]);
      }
      throw reason;
    }
  }

  private async _load(): Promise<void> {
    try {
      const page = await this._client.list({ limit: LIMIT });
      if (this._isDisposed) {
        return;
      }
      this._error = null;
      this._loaded = true;
      this._forgetMissing(page.runs, page.next);
      this._take(page.runs);
    } catch (reason) {
      if (this._isDisposed) {
        return;
      }
      this._error =
        reason instanceof ApiError
          ? reason
          : ApiError.local(NETWORK_ERROR, String(reason));
      this._changed.emit();
      throw this._error;
    }
  }

  /** Runs that the list should hold but doesn't are gone. */
  private _forgetMissing(runs: readonly IRun[], next: string | null): void {
    const there = new Set(runs.map(run => run.runId));
    const last = runs[runs.length - 1];
    const oldest = last ? order(last) : '';
    for (const run of [...this._known.values()]) {
      const inReach = next === null || order(run) > oldest;
      if (inReach && !there.has(run.runId)) {
        this._known.delete(run.runId);
      }
    }
    if (next === null || this._known.size <= runs.length) {
      this._next = next;
    }
  }

  private _take(runs: readonly IRun[]): void {
    const changes: IRunChange[] = [];
    for (const run of runs) {
      const before = this._known.get(run.runId)?.state ?? null;
      this._known.set(run.runId, run);
      if (before !== run.state) {
        changes.push({ run, before });
      }
    }
    // Ids begin with the time; of an array the list has the parent only.
    this._runs = [...this._known.values()]
      .filter(run => run.parent === null)
      .sort((one, other) => compareTexts(order(other), order(one)));
    this._changed.emit();
    changes.forEach(change => this._stateChanged.emit(change));
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    if (event.schema_id !== RUN_EVENT || !this._started) {
      return;
    }
    const { run_id: runId, parent } = event;
    for (const id of [runId, parent]) {
      if (typeof id === 'string') {
        this._stale.add(id);
      }
    }
    this._timer ??= setTimeout(() => {
      this._timer = undefined;
      void this._readStale();
    }, GATHER_MS);
  }

  private async _readStale(): Promise<void> {
    const stale = [...this._stale];
    this._stale.clear();
    if (stale.length > 5) {
      await this.refresh();
      return;
    }
    // A run that can't be read (deleted meanwhile) is the next list's business.
    await Promise.all(stale.map(id => this.get(id).catch(() => undefined)));
  }

  private readonly _client: IRunClient;
  private readonly _events: RunsModel.Events | null;
  private readonly _poll: Poll;
  private readonly _known = new Map<string, IRun>();
  private readonly _stale = new Set<string>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _stateChanged = new Signal<this, IRunChange>(this);
  private _runs: readonly IRun[] = [];
  private _next: string | null = null;
  private _error: ApiError | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _loaded = false;
  private _started = false;
  private _isDisposed = false;
}

export namespace RunsModel {
  /** What tells of events. */
  export type Events = ISignal<unknown, Event.Emission>;

  export interface IOptions {
    client: IRunClient;
    events?: Events;
    /** Milliseconds between two looks at the list. */
    interval?: number;
  }
}

/** What the server says of a run that is not there. */
const MISSING = ['not_found', 'no_such_run'];

/** Whether the server said that there is no such run. */
export function isMissing(reason: unknown): boolean {
  return reason instanceof ApiError && MISSING.includes(reason.code);
}

function order(run: IRun): string {
  return `${run.submittedAt ?? ''} ${run.runId}`;
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
