import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { OutputData } from './data';

/**
 * A card that asks the server nothing: of a notebook that isn't trusted, or of an output that names no run.
 */
export class StillCard extends ReactWidget {
  constructor(options: StillCard.IOptions) {
    super();
    this.addClass('jp-HyperPod-RunCard');
    this._options = options;
  }

  protected override render(): JSX.Element {
    const { connect, data, trans } = this._options;
    return (
      <div className="jp-HyperPod-Message">
        <p>{whyText(data, trans)}</p>
        {data.kind === 'run' && (
          <button
            type="button"
            className="jp-HyperPod-button"
            onClick={connect}
          >
            {trans.__('Show the log of run %1', data.runId)}
          </button>
        )}
      </div>
    );
  }

  private readonly _options: StillCard.IOptions;
}

export namespace StillCard {
  export interface IOptions {
    readonly data: OutputData;
    /** Shows the log after all. */
    readonly connect: () => void;
    readonly trans: TranslationBundle;
  }
}

function whyText(data: OutputData, trans: TranslationBundle): string {
  switch (data.kind) {
    case 'run':
      return trans.__(
        'This notebook is not trusted, so its runs are not loaded automatically.'
      );
    case 'newer':
      return trans.__(
        'This output was created by a newer version of the HyperPod extension. Update hyperpod_jlab to see the run.'
      );
    case 'malformed':
      return trans.__(
        'This output does not name a run. Run the cell again to submit a new run.'
      );
  }
}
