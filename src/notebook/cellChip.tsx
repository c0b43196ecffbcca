import type { ICellModel } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { stateText } from '../components/words';
import { IRun } from '../runs/types';
import { checksum } from './checksum';

/**
 * A line below a cell's code: the newest run that has the cell, and how it is. It stands in the page only, never in the notebook.
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

  override dispose(): void {
    if (!this.isDisposed) {
      this._options.cell.contentChanged.disconnect(this._onEdited, this);
      super.dispose();
    }
  }

  protected override render(): JSX.Element {
    const { open, trans } = this._options;
    const { run } = this._shown;
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
  private _wasStale: boolean | null = null;
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
    trans: TranslationBundle;
  }
}
