import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IRunAccess } from './access';
import { RunsModel } from './model';
import { IRun } from './types';
import { IRunOverview, IUsage, IWaitReason } from './client';

/**
 * One run, as a page shows it.
 */
export class RunPageModel implements IDisposable {
  constructor(runs: RunsModel, runId: string) {
    this._runs = runs;
    this.runId = runId;
    this._run = runs.find(runId) ?? null;
    runs.changed.connect(this._onChanged, this);
  }

  readonly runId: string;

  /** Shows a rank's log; the page sets it. */
  showRank: (rank: number) => void = () => undefined;

  /** The overview is in front, which says all there is to say of how the run is. */
  get isOverviewShown(): boolean {
    return this._isOverviewShown;
  }

  set isOverviewShown(value: boolean) {
    if (value !== this._isOverviewShown) {
      this._isOverviewShown = value;
      this._changed.emit();
    }
  }

  /** The run's limits, phases and ranks; null before they were read. */
  get overview(): IRunOverview | null {
    return this._overview;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The run; null before it was read. */
  get run(): IRun | null {
    return this._run;
  }

  /** Why the last request failed, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  /** The run was there, and is no more. */
  get removed(): boolean {
    return this._removed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._runs.changed.disconnect(this._onChanged, this);
      Signal.clearData(this);
    }
  }

  /** Reads the children of an array. */
  readonly loadChildren = (runId: string): Promise<readonly IRun[]> =>
    this._runs.children(runId);

  /** Asks why the run waits. */
  readonly loadWhy = (): Promise<IWaitReason> => this._runs.why(this.runId);

  /** Asks what the run used. */
  readonly loadUsage = (): Promise<IUsage | null> =>
    this._runs.usage(this.runId);

  /** Asks what of the run's nodes can be reached. */
  readonly loadAccess = (): Promise<IRunAccess> =>
    this._runs.access(this.runId);

  /** Read the run's limits, phases and ranks. They stay as they were when they can't be read. */
  async loadOverview(): Promise<void> {
    try {
      this._overview = await this._runs.overview(this.runId);
    } catch {
      return;
    }
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  /** Ask the server. */
  async load(): Promise<void> {
    if (this._loading) {
      return;
    }
    this._loading = true;
    try {
      this._run = await this._runs.get(this.runId);
      this._keepOverview();
      this._error = null;
      this._removed = false;
    } catch (reason) {
      this._error = ApiError.of(reason);
      this._removed = this._error.isMissing && this._run !== null;
    } finally {
      this._loading = false;
    }
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private _onChanged(): void {
    const run = this._runs.find(this.runId);
    if (!run) {
      // Also a child of an array is in no list: the server knows.
      if (this._run !== null && !this._removed) {
        void this.load();
      }
    } else if (run !== this._run || this._removed) {
      this._run = run;
      this._error = null;
      this._removed = false;
      this._keepOverview();
      this._changed.emit();
    }
  }

  /** Limits change with the run, ranks with its state: then they are read again. */
  private _keepOverview(): void {
    if (this._run !== this._overviewOf) {
      this._overviewOf = this._run;
      void this.loadOverview();
    }
  }

  private readonly _runs: RunsModel;
  private readonly _changed = new Signal<this, void>(this);
  private _run: IRun | null;
  private _error: ApiError | null = null;
  private _overview: IRunOverview | null = null;
  private _overviewOf: IRun | null = null;
  private _isOverviewShown = false;
  private _removed = false;
  private _loading = false;
  private _isDisposed = false;
}
