import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IMetricSeries, IMetricSummary, ITrainingClient } from './client';

type Point = IMetricSeries['points'][number];

/** Milliseconds before the server is asked again after an error. */
const RETRY_MS = 5000;

/** Milliseconds between two answers at least: a page draws no faster. */
const PAUSE_MS = 100;

/** Points of a series above which the page thins out the older half. */
const MAX_POINTS = 20_000;

/**
 * A course of numbers, whose points grow.
 */
export interface ISeries {
  readonly name: string;
  readonly rank: number;
  readonly attempt: number;
  readonly points: readonly Point[];
}

/**
 * What the ranks of a run print: loaded once, then updated while the chart is visible. It sends no requests while the browser tab is hidden.
 */
export class SeriesModel implements IDisposable {
  constructor(
    private readonly _client: Pick<ITrainingClient, 'series'>,
    readonly runId: string
  ) {}

  /** There are new numbers, or an error. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get series(): readonly ISeries[] {
    return this._series;
  }

  /** Null before the first answer. */
  get summary(): IMetricSummary | null {
    return this._summary;
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
      this.stop();
      Signal.clearData(this);
    }
  }

  /** Follow the run; once only where it has ended. */
  start(isFollowed: boolean): void {
    this._isFollowed = isFollowed;
    if (!this._isRunning && !this._isDisposed) {
      this._isRunning = true;
      this._next();
    }
  }

  stop(): void {
    this._isRunning = false;
    clearTimeout(this._timer);
    document.removeEventListener('visibilitychange', this._next);
    this._turn += 1;
  }

  /** Ask the server, once the tab is seen. */
  private readonly _next = (): void => {
    document.removeEventListener('visibilitychange', this._next);
    if (document.hidden) {
      document.addEventListener('visibilitychange', this._next);
    } else {
      void this._follow();
    }
  };

  private async _follow(): Promise<void> {
    const turn = ++this._turn;
    let pause = PAUSE_MS;
    try {
      const answer = await this._client.series(this.runId, this._cursor);
      if (turn !== this._turn) {
        return;
      }
      this._cursor = answer.cursor;
      this._summary = answer.summary;
      this._error = null;
      this._series = answer.is_whole
        ? answer.series
        : grown(this._series, answer.series);
    } catch (reason) {
      if (turn !== this._turn) {
        return;
      }
      this._error = ApiError.of(reason);
      pause = RETRY_MS;
    }
    this._changed.emit();
    if (this._isFollowed) {
      this._timer = setTimeout(this._next, pause);
    } else {
      this._isRunning = false;
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _series: readonly ISeries[] = [];
  private _summary: IMetricSummary | null = null;
  private _cursor: string | null = null;
  private _error: ApiError | null = null;
  private _isFollowed = false;
  private _isRunning = false;
  private _isDisposed = false;
  private _turn = 0;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** Series with what came since. */
export function grown(
  known: readonly ISeries[],
  added: readonly ISeries[]
): readonly ISeries[] {
  const byKey = new Map(known.map(one => [keyOf(one), one]));
  for (const one of added) {
    const before = byKey.get(keyOf(one))?.points ?? [];
    const points = thinned([...before, ...one.points]);
    byKey.set(keyOf(one), { ...one, points });
  }
  return [...byKey.values()];
}

/** Of very many points, every second of the older half. */
function thinned(points: readonly Point[]): readonly Point[] {
  if (points.length <= MAX_POINTS) {
    return points;
  }
  const half = Math.floor(points.length / 2);
  return [
    ...points.slice(0, half).filter((_, at) => at % 2 === 0),
    ...points.slice(half)
  ];
}

function keyOf({ attempt, name, rank }: ISeries): string {
  return `${attempt} ${rank} ${name}`;
}
