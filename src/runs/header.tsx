import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { Children } from './children';
import { FirstError, RunFacts } from './facts';
import { RunPageModel } from './pageModel';
import { SignalWidget } from '../components/signalWidget';
import type { ICellPlace } from '../logs/place';
import { StateChip } from '../components/stateChip';
import { IRun, isEnded } from './types';

/**
 * What the buttons of a run page do.
 */
export interface IRunActions {
  cancel(run: IRun): void;
  /** Null where nothing is there that could run it again. */
  clone: ((run: IRun) => void) | null;
  copyCommand(run: IRun): void;
  /** Show another run's page. */
  openRun: (runId: string) => void;
  /** Show a line of a cell that ran. */
  openPlace(runId: string, place: ICellPlace): void;
}

/**
 * The head of a run page: what the run is, how it is, what can be done.
 */
export class RunHeader extends SignalWidget {
  constructor(
    model: RunPageModel,
    actions: IRunActions,
    trans: TranslationBundle
  ) {
    super(model.changed);
    this.addClass('jp-HyperPod-RunHeader');
    this._model = model;
    this._actions = actions;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return (
      <HeaderContent
        model={this._model}
        actions={this._actions}
        trans={this._trans}
      />
    );
  }

  private readonly _model: RunPageModel;
  private readonly _actions: IRunActions;
  private readonly _trans: TranslationBundle;
}

interface IProps {
  model: RunPageModel;
  actions: IRunActions;
  trans: TranslationBundle;
}

function HeaderContent({ model, actions, trans }: IProps): JSX.Element {
  const { error, run } = model;
  if (!run) {
    return error ? (
      <ErrorMessage
        error={error}
        trans={trans}
        retry={() => void model.load()}
      />
    ) : (
      <p role="status">{trans.__('Reading the run…')}</p>
    );
  }
  if (model.removed) {
    return (
      <>
        <div className="jp-HyperPod-RunHeader-title">
          <h1>{run.name}</h1>
        </div>
        <p className="jp-HyperPod-RunHeader-reason" role="status">
          {trans.__('This run was removed.')}
        </p>
        <RunFacts run={run} trans={trans} isRemoved />
      </>
    );
  }
  return (
    <>
      <div className="jp-HyperPod-RunHeader-title">
        <h1>{run.name}</h1>
        <span role="status" aria-live="polite">
          <StateChip state={run.state} reason={run.reason} trans={trans} />
        </span>
        <Buttons run={run} actions={actions} trans={trans} />
      </div>
      {run.reason && (
        <p className="jp-HyperPod-RunHeader-reason">{run.reason}</p>
      )}
      <FirstError run={run} trans={trans} show={model.showRank} />
      <RunFacts run={run} trans={trans} />
      <Children
        run={run}
        trans={trans}
        load={model.loadChildren}
        open={actions.openRun}
      />
      {error && <ErrorMessage error={error} trans={trans} />}
    </>
  );
}

function Buttons(props: {
  run: IRun;
  actions: IRunActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, run, trans } = props;
  const { clone } = actions;
  return (
    <div className="jp-HyperPod-RunHeader-buttons">
      {!isEnded(run.state) && (
        <button
          type="button"
          className="jp-HyperPod-button jp-mod-warn"
          disabled={run.reasonCode === 'cancelling'}
          onClick={() => actions.cancel(run)}
        >
          {trans.__('Cancel')}
        </button>
      )}
      {clone && (
        <button
          type="button"
          className="jp-HyperPod-button"
          title={trans.__('Run it once more, changed or as it is')}
          onClick={() => clone(run)}
        >
          {trans.__('Run again…')}
        </button>
      )}
      <button
        type="button"
        className="jp-HyperPod-button"
        title={trans.__('Copy the command that shows this log in a terminal')}
        onClick={() => actions.copyCommand(run)}
      >
        {trans.__('Copy command')}
      </button>
    </div>
  );
}
