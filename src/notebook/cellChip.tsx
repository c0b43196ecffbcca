import type { ICellModel } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { useTick } from '../components/useTick';
import { stateText } from '../components/words';
import { executedCell } from '../logs/place';
import { clockText } from '../runs/words';
import { IRun, isEnded } from '../runs/types';
import { checksum } from './checksum';
import type { IRunOfCell } from './client';

/**
 * A line below a cell's code: the newest run with this cell, and its state. It is in the page only, never in the notebook file.
 */
export class CellChip extends ReactWidget {
  constructor(options: CellChip.IOptions) {
    super();
    this.addClass('jp-HyperPod-CellChip');
    this._options = options;
    this._shown = options.shown;
    options.cell.contentChanged.connect(this._onEdited, this);
  }

  /** Show another state or run. */
  set(shown: CellChip.IShown): void {
    if (shown.run !== this._shown.run || shown.sent !== this._shown.sent) {
      this._shown = shown;
      this.update();
    }
  }

  /** The run, and its progress. */
  private _renderRun(): JSX.Element {
    const { open, trans } = this._options;
    const { run, sent } = this._shown;
    const [state, text] = cellState(run, sent.number, trans);
    const hasEnded = isEnded(run.state);
    return (
      <>
        <button
          type="button"
          className="jp-HyperPod-link"
          title={trans.__('Open the run and its log')}
          aria-label={trans.__('Open run %1: %2', run.name, text)}
          onClick={() => open(run.run_id)}
        >
          <StateChip
            state={state}
            text={text}
            reason={run.reason}
            trans={trans}
          />
          <span>{trans.__('%1 on %2', run.name, run.cluster)}</span>
        </button>
        {run.started_at !== null && (
          <Clock from={run.started_at} to={run.ended_at} isLive={!hasEnded} />
        )}
        {run.reason && !hasEnded && (
          <span className="jp-HyperPod-CellChip-reason" title={run.reason}>
            {run.reason}
          </span>
        )}
      </>
    );
  }

  /** Whether the log is below. */
  set hasLog(value: boolean) {
    if (value !== this._hasLog) {
      this._hasLog = value;
      this.update();
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._options.cell.contentChanged.disconnect(this._onEdited, this);
      super.dispose();
    }
  }

  protected override render(): JSX.Element {
    const { toggleLog, trans } = this._options;
    return (
      <>
        {/* The card below says it, where the log is shown. */}
        {!this._hasLog && this._renderRun()}
        <button
          type="button"
          className="jp-HyperPod-link"
          aria-expanded={this._hasLog}
          onClick={toggleLog}
        >
          {this._hasLog ? trans.__('Hide log') : trans.__('Show log')}
        </button>
        {this._isStale() && (
          <span
            className="jp-HyperPod-CellChip-stale"
            title={trans.__(
              'The run uses the cell as it was when you submitted it.'
            )}
          >
            {trans.__('changed since')}
          </span>
        )}
      </>
    );
  }

  private _isStale(): boolean {
    return (
      checksum(this._options.cell.sharedModel.getSource()) !==
      this._shown.sent.checksum
    );
  }

  private _onEdited(): void {
    const stale = this._isStale();
    if (stale !== this._wasStale) {
      this._wasStale = stale;
      this.update();
    }
  }

  private readonly _options: CellChip.IOptions;
  private _shown: CellChip.IShown;
  private _hasLog = false;
  private _wasStale: boolean | null = null;
}

/** A cell's state and the word for it: where a run failed in another cell, this one ran, or was not reached. */
export function cellState(
  { attempts, state }: IRun,
  number: number,
  trans: TranslationBundle
): [string, string] {
  const error = attempts[attempts.length - 1]?.first_error;
  const broken = error ? (executedCell(error.traceback) ?? error.cell) : null;
  if (state !== 'failed' || broken === null || broken === number) {
    return [state, stateText(state, trans)];
  }
  return number < broken
    ? ['succeeded', trans.__('ran')]
    : ['cancelled', trans.__('not run')];
}

/** How long a run takes, or took. */
function Clock(props: {
  from: string;
  to: string | null;
  isLive: boolean;
}): JSX.Element {
  const { from, isLive, to } = props;
  useTick(isLive);
  const end = to === null ? Date.now() : Date.parse(to);
  return (
    <span className="jp-HyperPod-CellChip-clock">
      {clockText((end - Date.parse(from)) / 1000)}
    </span>
  );
}

export namespace CellChip {
  /** What a chip shows. */
  export interface IShown {
    readonly run: IRun;
    /** The cell as it was sent. */
    readonly sent: IRunOfCell;
  }

  export interface IOptions {
    cell: ICellModel;
    shown: IShown;
    open: (runId: string) => void;
    /** Shows the log below, or hides it. */
    toggleLog: () => void;
    trans: TranslationBundle;
  }
}
