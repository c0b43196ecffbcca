import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import type { IWatched } from '../components/watchingWidget';
import type { RunsModel } from '../runs/model';
import { isEnded } from '../runs/types';
import { IComparison, ITrainingClient } from './client';
import { ISeries, SeriesModel } from './seriesModel';

/**
 * What differs between runs, and their curves, which are followed while runs are active.
 */
export class CompareModel implements IWatched {
  constructor(
    private readonly _client: Pick<ITrainingClient, 'compare' | 'series'>,
    private readonly _runs: RunsModel,
    readonly runIds: readonly string[]
  ) {
    this._models = runIds.map(runId => new SeriesModel(_client, runId));
    this._models.forEach(model => model.changed.connect(this._onSeries, this));
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get comparison(): IComparison | null {
    return this._comparison;
  }

  get error(): ApiError | null {
    return this._error;
  }

  /** The series of each run; another map whenever there are new numbers. */
  get series(): ReadonlyMap<string, readonly ISeries[]> {
    return this._series;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._models.forEach(model => model.dispose());
      Signal.clearData(this);
    }
  }

  start(): void {
    if (this._comparison === null) {
      void this._load();
    }
    for (const model of this._models) {
      const run = this._runs.find(model.runId);
      model.start(run !== undefined && !isEnded(run.state));
    }
  }

  stop(): void {
    this._models.forEach(model => model.stop());
  }

  retry(): void {
    void this._load();
  }

  private async _load(): Promise<void> {
    try {
      this._comparison = await this._client.compare(this.runIds);
      this._error = null;
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private _onSeries(): void {
    this._series = new Map(
      this._models.map(model => [model.runId, model.series])
    );
    this._changed.emit();
  }

  private readonly _models: readonly SeriesModel[];
  private readonly _changed = new Signal<this, void>(this);
  private _comparison: IComparison | null = null;
  private _error: ApiError | null = null;
  private _series: ReadonlyMap<string, readonly ISeries[]> = new Map();
  private _isDisposed = false;
}
