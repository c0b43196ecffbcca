import { Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { IDisposable } from '@lumino/disposable';

import { IRun } from '../runs/types';

/** Runs that end at about the same time share one notification. */
const FIRST_MS = 300;

/** Between two changes of an open notification. */
const GATHER_MS = 3000;

/** Good news disappears by itself; bad news stays. Runs that end meanwhile join the open notification. */
const GOOD_NEWS_MS = 10_000;

/**
 * Tells which runs have ended: those that end within a few seconds in one notification.
 */
export class EndedRuns implements IDisposable {
  constructor(options: EndedRuns.IOptions) {
    this._options = options;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  /** A run has ended. */
  add(run: IRun): void {
    if (!this._isDisposed) {
      this._waiting.push(run);
      const { gather } = this._options;
      this._timer ??= setTimeout(
        () => this._tell(),
        gather ?? (this._isShown ? GATHER_MS : FIRST_MS)
      );
    }
  }

  /** The newest notification is still open. */
  private get _isShown(): boolean {
    return Date.now() - this._toldAt < GOOD_NEWS_MS;
  }

  private _tell(): void {
    this._timer = undefined;
    const isShown = this._isShown;
    const runs = [...(isShown ? this._told : []), ...this._waiting];
    const notification = this._notificationOf(runs);
    if (!isShown || !Notification.update({ id: this._id, ...notification })) {
      const { message, type, ...options } = notification;
      this._id = Notification.emit(message, type, options);
    }
    this._told = runs;
    this._waiting = [];
    this._toldAt = Date.now();
  }

  private _notificationOf(runs: readonly IRun[]): EndedRuns.INotification {
    const { openRun, openRuns, trans } = this._options;
    const isBad = runs.some(run => run.state === 'failed');
    const isGood = runs.every(run => run.state === 'succeeded');
    const [run] = runs;
    const action =
      runs.length === 1
        ? {
            label: trans.__('Open run'),
            callback: () => openRun(run.run_id)
          }
        : { label: trans.__('Show runs'), callback: openRuns };
    return {
      message: runs.length === 1 ? textOf(run, trans) : bundleText(runs, trans),
      type: isBad ? 'error' : isGood ? 'success' : 'info',
      autoClose: isBad ? false : GOOD_NEWS_MS,
      actions: [action]
    };
  }

  private readonly _options: EndedRuns.IOptions;
  private _waiting: IRun[] = [];
  /** Those of the newest notification. */
  private _told: readonly IRun[] = [];
  private _toldAt = -Infinity;
  private _id = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}

export namespace EndedRuns {
  export interface IOptions {
    readonly openRun: (runId: string) => void;
    /** Shows all runs. */
    readonly openRuns: () => void;
    readonly trans: TranslationBundle;
    /** Milliseconds from the end of a run to its notification. */
    readonly gather?: number;
  }

  export interface INotification {
    readonly message: string;
    readonly type: 'error' | 'info' | 'success';
    readonly autoClose: number | false;
    readonly actions: Notification.IAction[];
  }
}

function textOf(run: IRun, trans: TranslationBundle): string {
  switch (run.state) {
    case 'succeeded':
      return trans.__('%1 succeeded.', run.name);
    case 'failed':
      return run.reason
        ? trans.__('%1 failed: %2', run.name, run.reason)
        : trans.__('%1 failed.', run.name);
    default:
      return trans.__('%1 was cancelled.', run.name);
  }
}

/** Such as “12 runs finished, 1 failed.” */
function bundleText(runs: readonly IRun[], trans: TranslationBundle): string {
  const count = (state: IRun['state']) =>
    runs.filter(run => run.state === state).length;
  const [failed, cancelled] = [count('failed'), count('cancelled')];
  const parts = [
    trans.__('%1 runs finished', runs.length),
    ...(failed > 0 ? [trans.__('%1 failed', failed)] : []),
    ...(cancelled > 0 ? [trans.__('%1 cancelled', cancelled)] : [])
  ];
  return `${parts.join(', ')}.`;
}
