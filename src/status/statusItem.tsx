import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { RunsModel } from '../runs/model';

/**
 * How many runs are at work, in the status bar.
 */
export class StatusItem extends SignalWidget {
  constructor(model: RunsModel, open: () => void, trans: TranslationBundle) {
    super(model.changed);
    this._model = model;
    this._open = open;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return (
      <button
        type="button"
        className="jp-HyperPod-StatusItem"
        title={this._trans.__('Show HyperPod clusters and runs')}
        onClick={this._open}
      >
        {this._text()}
      </button>
    );
  }

  private _text(): string {
    const { active } = this._model;
    const running = active.filter(run => run.state === 'running').length;
    const waiting = active.length - running;
    return waiting === 0
      ? this._trans.__('HyperPod: %1 running', running)
      : this._trans.__('HyperPod: %1 running, %2 waiting', running, waiting);
  }

  private readonly _model: RunsModel;
  private readonly _open: () => void;
  private readonly _trans: TranslationBundle;
}
