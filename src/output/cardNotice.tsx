import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { RunPageModel } from '../runs/pageModel';

/**
 * What a card says instead of a log: that the run is being read, or why there is none.
 */
export class CardNotice extends ReactWidget {
  constructor(model: RunPageModel, trans: TranslationBundle) {
    super();
    this._model = model;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return (
      <UseSignal signal={this._model.changed}>
        {() => <Notice model={this._model} trans={this._trans} />}
      </UseSignal>
    );
  }

  private readonly _model: RunPageModel;
  private readonly _trans: TranslationBundle;
}

function Notice(props: {
  model: RunPageModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  const { error, run, runId } = model;
  if (run) {
    return null;
  }
  if (error?.isNotFound) {
    return (
      <p className="jp-HyperPod-Message">
        {trans.__(
          'Run %1 not found. It was removed or submitted from another server.',
          runId
        )}
      </p>
    );
  }
  if (error) {
    return (
      <ErrorMessage
        error={error}
        trans={trans}
        retry={() => void model.load()}
      />
    );
  }
  return (
    <p className="jp-HyperPod-Message" role="status">
      {trans.__('Loading the run…')}
    </p>
  );
}
