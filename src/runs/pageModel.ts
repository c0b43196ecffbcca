import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, NETWORK_ERROR } from '../api';
import { RunsModel } from './model';
import { IRun } from './types';

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

  /** Ask the server. */
  async load(): Promise<void> {
    try {
      this._run = await this._runs.get(this.runId);
      this._error = null;
    } catch (reason) {
      this._error =
        reason instanceof ApiError
          ? reason
          : ApiError.local(NETWORK_ERROR, String(reason));
    }
    this._changed.emit();
  }

  private _onChanged(): void {
    const run = this._runs.find(this.runId);
    if (run && run !== this._run) {
      this._run = run;
      this._error = null;
      this._changed.emit();
    }
  }

  private readonly _runs: RunsModel;
  private readonly _changed = new Signal<this, void>(this);
  private _run: IRun | null;
  private _error: ApiError | null = null;
  private _isDisposed = false;
}
