import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import type { RunsModel } from '../runs/model';
import { IRun, isEnded } from '../runs/types';
import { IRunAlarm, IRunNumbers, ITrainingClient } from './client';

/** Milliseconds between two looks while runs are active. The server reads the runs' own files only. */
const ACTIVE_MS = 2000;

/** Runs in one request. */
const MOST = 100;

/**
 * A run has a new alarm.
 */
export interface IAlarmRaised {
  readonly run: IRun;
  readonly alarm: IRunAlarm;
}

/**
 * The newest numbers of the runs that the page knows: of active ones again and again, of others once. Nothing is asked
 * while the browser's tab is hidden.
 */
export class NumbersModel implements IDisposable {
  constructor(
    private readonly _client: Pick<ITrainingClient, 'summaries'>,
    private readonly _runs: RunsModel
  ) {
    _runs.changed.connect(this._onRuns, this);
    document.addEventListener('visibilitychange', this._onRuns);
  }

  /** Some numbers are newer. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** An active run has a new alarm. */
  get alarmRaised(): ISignal<this, IAlarmRaised> {
    return this._alarmRaised;
  }

  /** The newest numbers of a run; undefined where it prints none. */
  of(runId: string): IRunNumbers | undefined {
    return this._known.get(runId);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      clearTimeout(this._timer);
      this._runs.changed.disconnect(this._onRuns, this);
      document.removeEventListener('visibilitychange', this._onRuns);
      Signal.clearData(this);
    }
  }

  private readonly _onRuns = (): void => {
    const isWanted = !document.hidden && this._wanted().length > 0;
    if (this._timer === undefined && isWanted) {
      this._timer = setTimeout(() => void this._look(), 0);
    }
  };

  /** Active runs, and those that were not asked for since they ended. */
  private _wanted(): readonly IRun[] {
    return this._runs.runs
      .filter(
        run =>
          run.started_at !== null && this._asked.get(run.run_id) !== run.state
      )
      .slice(0, MOST);
  }

  private async _look(): Promise<void> {
    const runs = document.hidden ? [] : this._wanted();
    if (runs.length > 0) {
      try {
        const found = await this._client.summaries(runs.map(run => run.run_id));
        if (this._isDisposed) {
          return;
        }
        this._take(runs, found);
      } catch {
        // The lists say what is wrong with the server.
      }
    }
    const isGoing = !document.hidden && this._wanted().length > 0;
    this._timer = isGoing
      ? setTimeout(() => void this._look(), ACTIVE_MS)
      : undefined;
  }

  private _take(runs: readonly IRun[], found: readonly IRunNumbers[]): void {
    const byId = new Map(runs.map(run => [run.run_id, run]));
    for (const run of runs) {
      if (isEnded(run.state)) {
        this._asked.set(run.run_id, run.state);
      }
    }
    const raised: IAlarmRaised[] = [];
    for (const numbers of found) {
      const run = byId.get(numbers.run_id);
      const before = this._known.get(numbers.run_id)?.summary.alarms ?? [];
      const codes = new Set(before.map(one => one.code));
      for (const alarm of numbers.summary.alarms) {
        if (run && !isEnded(run.state) && !codes.has(alarm.code)) {
          raised.push({ run, alarm });
        }
      }
      this._known.set(numbers.run_id, numbers);
    }
    this._changed.emit();
    raised.forEach(one => this._alarmRaised.emit(one));
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _alarmRaised = new Signal<this, IAlarmRaised>(this);
  private readonly _known = new Map<string, IRunNumbers>();
  /** The state in which an ended run was asked for. */
  private readonly _asked = new Map<string, string>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}
