import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import type { IRunClient } from '../runs/client';
import { IRun } from '../runs/types';

/** More runs at work than that have no limit shown: each is a request. */
const MOST = 20;

/**
 * The time limits of running runs in seconds, each read once from its records: no scheduler is asked.
 */
export class TimeLimits implements IDisposable {
  constructor(private readonly _client: Pick<IRunClient, 'overview'>) {}

  /** One more is known. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** A run's limit; null where it has none, or it is not known. */
  of(runId: string): number | null {
    return this._known.get(runId) ?? null;
  }

  /** Read those of runs that run. */
  look(runs: readonly IRun[]): void {
    for (const { run_id: runId } of runs
      .filter(run => run.state === 'running')
      .slice(0, MOST)) {
      if (!this._known.has(runId)) {
        this._known.set(runId, null);
        void this._read(runId);
      }
    }
  }

  private async _read(runId: string): Promise<void> {
    // A bar that is missing is no fault.
    const found = await this._client.overview(runId).catch(() => null);
    const limit = found?.time_limit;
    if (typeof limit === 'number' && !this._isDisposed) {
      this._known.set(runId, limit);
      this._changed.emit();
    }
  }

  private readonly _known = new Map<string, number | null>();
  private readonly _changed = new Signal<this, void>(this);
  private _isDisposed = false;
}
