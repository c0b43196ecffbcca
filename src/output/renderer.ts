import type { IRenderMime } from '@jupyterlab/rendermime';
import { TranslationBundle } from '@jupyterlab/translation';
import { Panel } from '@lumino/widgets';

import { decodeOutput, MIME_TYPE, OutputData } from './data';
import type { RunCard } from './runCard';
import { StillCard } from './stillCard';

/**
 * An output that is a run. Only a trusted one sends requests without a click.
 */
export class RunOutput extends Panel implements IRenderMime.IRenderer {
  constructor(options: RunOutput.IOptions) {
    super();
    this.addClass('jp-HyperPod-RunOutput');
    this._options = options;
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data = decodeOutput(model.data[MIME_TYPE]);
    const key = JSON.stringify([data, model.trusted]);
    // The same again, for example as the notebook was saved: the log stays as it is.
    if (key !== this._shown) {
      this._shown = key;
      await this._show(data, model.trusted);
    }
  }

  private async _show(data: OutputData, isTrusted: boolean): Promise<void> {
    const turn = ++this._turn;
    if (data.kind === 'run' && isTrusted) {
      await this._showCard(data.runId, data.name, turn);
      return;
    }
    const connect = () => {
      if (data.kind === 'run') {
        void this._showCard(data.runId, data.name, turn, true);
      }
    };
    const { trans } = this._options;
    this._put(new StillCard({ data, connect, trans }));
  }

  private async _showCard(
    runId: string,
    name: string,
    turn: number,
    takesFocus = false
  ): Promise<void> {
    const card = await this._options.makeCard(runId, name);
    if (this.isDisposed || turn !== this._turn) {
      card.dispose();
      return;
    }
    this._put(card);
    if (takesFocus) {
      // What was clicked is gone.
      card.node.tabIndex = -1;
      card.node.focus();
    }
  }

  private _put(widget: RunCard | StillCard): void {
    this.widgets.slice().forEach(child => child.dispose());
    this.addWidget(widget);
  }

  private readonly _options: RunOutput.IOptions;
  private _shown = '';
  private _turn = 0;
}

export namespace RunOutput {
  export interface IOptions {
    readonly trans: TranslationBundle;
    /** Makes a run's live card, to stand in an output. */
    readonly makeCard: (runId: string, name: string) => Promise<RunCard>;
  }
}
