import { Event } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import type { ActionKind, IChange } from '../actions/kinds';
import { ApiError, eventOf } from '../api';
import {
  IRunClient,
  IRunOverview,
  IRunPage,
  IUsage,
  IWaitReason
} from './client';
import { IRunAccess } from './access';
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
    this._inStep = options.inStep ?? (() => Promise.resolve());
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

  /** The user's own runs that wait or run. */
  get active(): readonly IRun[] {
    return this._runs.filter(
      run => run.own && !isEnded(run.state) && run.state !== 'unknown'
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

  /** Read the list again. */
  async refresh(): Promise<void> {
    this._started = true;
    await this._poll.refresh();
    await this._poll.tick.catch(() => undefined);
  }

  /** Read older runs too; `error` says why that can't be. Whoever asks meanwhile waits for the same. */
  loadMore(count = LIMIT): Promise<void> {
    this._older ??= this._loadOlder(count).finally(() => (this._older = null));
    return this._older;
  }

  /** A run that is known; undefined else. */
  find(runId: string): IRun | undefined {
    return this._known.get(runId);
  }

  /** The newest known run before one, of the same notebook, or else of the same name; null when there is none. */
  previous(runId: string): IRun | null {
    const run = this._known.get(runId);
    const isSame = (one: IRun) =>
      run?.notebook
        ? one.notebook === run.notebook
        : one.notebook === null && one.name === run?.name;
    return (
      this._runs.find(
        one => run && one.own && isSame(one) && order(one) < order(run)
      ) ?? null
    );
  }

  /** Ask the server for a run. */
  async get(runId: string): Promise<IRun> {
    return this._read(runId, this._client.get(runId));
  }

  /** Read the children of an array. */
  children(runId: string): Promise<readonly IRun[]> {
    return this._client.children(runId);
  }

  /** Ask why a run waits. */
  why(runId: string): Promise<IWaitReason> {
    return this._client.why(runId);
  }

  /** Ask for a run's limits, phases and ranks. */
  overview(runId: string): Promise<IRunOverview> {
    return this._client.overview(runId);
  }

  /** Ask what a run used. */
  usage(runId: string): Promise<IUsage | null> {
    return this._client.usage(runId);
  }

  /** Ask what of a run's nodes can be reached. */
  access(runId: string): Promise<IRunAccess> {
    return this._client.access(runId);
  }

  /** Do something to a run. */
  async act(
    runId: string,
    action: ActionKind,
    change?: IChange
  ): Promise<IRun> {
    if (action === 'cancel') {
      this._cancelled.add(runId);
    }
    return this._read(runId, this._client.act(runId, action, change));
  }

  /** Whether the user has cancelled a run in this page. */
  isCancelledHere(runId: string): boolean {
    return this._cancelled.has(runId);
  }

  /** Delete a run that has ended. */
  async delete(runId: string): Promise<void> {
    await this._client.delete(runId);
    this._known.delete(runId);
    this._listed.delete(runId);
    this._take([]);
  }

  /** Take in a run that was asked for, or that it is gone. */
  private async _read(runId: string, answer: Promise<IRun>): Promise<IRun> {
    try {
      const run = await answer;
      this._take([run]);
      return run;
    } catch (reason) {
      if (ApiError.of(reason).isMissing && this._known.delete(runId)) {
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
      this._setNext(page);
      this._forgetMissing(page);
      this._takePage(page);
    } catch (reason) {
      if (this._isDisposed) {
        return;
      }
      this._error = ApiError.of(reason);
      this._changed.emit();
      throw this._error;
    }
  }

  private async _loadOlder(limit: number): Promise<void> {
    const cursor = this._next;
    if (cursor === null) {
      return;
    }
    try {
      const page = await this._client.list({ limit, cursor });
      if (!this._isDisposed) {
        this._error = null;
        this._next = page.next;
        this._isLong = true;
        this._takePage(page);
      }
    } catch (reason) {
      this._error = ApiError.of(reason);
      if (!this._isDisposed) {
        this._changed.emit();
      }
    }
  }

  /** Where the list goes on: behind its first page, or behind the older ones that were read if they still join it. */
  private _setNext({ next, runs }: IRunPage): void {
    const joins = runs.some(run => this._listed.has(run.run_id));
    if (next === null || !this._isLong || !joins) {
      this._next = next;
      this._isLong = false;
    }
  }

  /** Runs that the list held and should hold still are gone; what it never held is not its business. */
  private _forgetMissing({ next, runs }: IRunPage): void {
    const there = new Set(runs.map(run => run.run_id));
    const last = runs[runs.length - 1];
    const oldest = last ? order(last) : '';
    for (const runId of [...this._listed]) {
      const run = this._known.get(runId);
      const inReach = next === null || (run && order(run) > oldest);
      if (!there.has(runId) && (inReach || !run)) {
        this._known.delete(runId);
        this._listed.delete(runId);
      }
    }
  }

  private _takePage({ runs }: IRunPage): void {
    runs.forEach(run => this._listed.add(run.run_id));
    this._take(runs);
  }

  private _take(runs: readonly IRun[]): void {
    const changes: IRunChange[] = [];
    for (const run of runs) {
      const before = this._known.get(run.run_id)?.state ?? null;
      this._known.set(run.run_id, run);
      if (before !== run.state) {
        changes.push({ run, before });
      }
    }
    // Of an array the list has the parent only.
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
    const { parent, run_id } = eventOf<'RunEvent'>(event);
    for (const id of [run_id, parent]) {
      if (id !== null) {
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
    // What else shows these runs is read with them, so that no two places contradict each other for long.
    const inStep = this._inStep();
    if (stale.length > 5) {
      await Promise.all([this.refresh(), inStep]);
      return;
    }
    // A run that can't be read (deleted meanwhile) is the next list's business.
    const reads = stale.map(id => this.get(id).catch(() => undefined));
    await Promise.all([...reads, inStep]);
  }

  private readonly _client: IRunClient;
  private readonly _inStep: () => Promise<void>;
  private readonly _events: RunsModel.Events | null;
  private readonly _poll: Poll;
  private readonly _known = new Map<string, IRun>();
  /** Those that a list held, by their ids. */
  private readonly _listed = new Set<string>();
  private readonly _stale = new Set<string>();
  private readonly _cancelled = new Set<string>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _stateChanged = new Signal<this, IRunChange>(this);
  private _runs: readonly IRun[] = [];
  private _next: string | null = null;
  /** More than the first page was read. */
  private _isLong = false;
  private _older: Promise<void> | null = null;
  private _error: ApiError | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _loaded = false;
  private _started = false;
  private _isDisposed = false;
}

export namespace RunsModel {
  /** The source of events. */
  export type Events = ISignal<unknown, Event.Emission>;

  export interface IOptions {
    client: IRunClient;
    events?: Events;
    /** Reads again what else shows runs, because some changed. */
    inStep?: () => Promise<void>;
    /** Milliseconds between two looks at the list. */
    interval?: number;
  }
}

/** As the server sorts: by the time, then by the id. */
function order({
  created_at: createdAt,
  run_id: runId,
  submitted_at: submittedAt
}: IRun): string {
  return `${createdAt ?? submittedAt ?? ''} ${runId}`;
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
