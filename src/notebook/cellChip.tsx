import type { ICellModel } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { useTick } from '../components/useTick';
import { stateText } from '../components/words';
import { clockText } from '../runs/words';
import { IRun, isEnded } from '../runs/types';
import { checksum } from './checksum';

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
    const { run } = this._shown;
    const hasEnded = isEnded(run.state);
    return (
      <>
        <button
          type="button"
          className="jp-HyperPod-link"
          title={trans.__('Open the run and its log')}
          aria-label={trans.__(
            'Open run %1: %2',
            run.name,
            stateText(run.state, trans)
          )}
          onClick={() => open(run.run_id)}
        >
          <StateChip state={run.state} reason={run.reason} trans={trans} />
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
      checksum(this._options.cell.sharedModel.getSource()) !== this._shown.sent
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
    /** The checksum of the source that was sent. */
    readonly sent: string;
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
