import { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon, Toolbar } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { IconButton } from '../components/iconButton';
import { SignalWidget } from '../components/signalWidget';
import { StateChip } from '../components/stateChip';
import { durationText, momentText } from '../components/words';
import { RunsModel } from '../runs/model';
import { IRun } from '../runs/types';
import type { IPanelActions } from './panel';

/** What one types is the same in all languages. */
const MAGIC = '%%hyperpod';
const COMMAND = "hpj submit -c 'echo hello'";

/**
 * The user's runs, newest first.
 */
export class RunsSection
  extends SignalWidget
  implements Toolbar.IWidgetToolbar
{
  constructor(
    model: RunsModel,
    actions: IPanelActions,
    trans: TranslationBundle
  ) {
    super(model.changed);
    this.addClass('jp-HyperPod-Section');
    this.title.label = trans.__('Runs');
    this._model = model;
    this._actions = actions;
    this._trans = trans;
    this.toolbar = new Toolbar();
    this.toolbar.addItem(
      'refresh',
      new IconButton(
        refreshIcon,
        trans.__('Refresh runs'),
        () => void model.refresh()
      )
    );
  }

  readonly toolbar: Toolbar;

  protected override render(): JSX.Element {
    return (
      <RunList
        model={this._model}
        actions={this._actions}
        trans={this._trans}
      />
    );
  }

  private readonly _model: RunsModel;
  private readonly _actions: IPanelActions;
  private readonly _trans: TranslationBundle;
}

function RunList(props: {
  model: RunsModel;
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, model, trans } = props;
  return (
    <>
      {model.error && (
        <ErrorMessage
          error={model.error}
          trans={trans}
          retry={() => void model.refresh()}
        />
      )}
      {!model.loaded && !model.error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {model.loaded && model.runs.length === 0 && <NoRuns trans={trans} />}
      <ul className="jp-HyperPod-list" aria-label={trans.__('Runs')}>
        {model.runs.map(run => (
          <RunItem
            key={run.run_id}
            run={run}
            open={() => actions.openRun(run.run_id)}
            trans={trans}
          />
        ))}
      </ul>
      {model.more && (
        <button
          type="button"
          className="jp-HyperPod-button"
          onClick={() => void model.loadMore()}
        >
          {trans.__('Older runs')}
        </button>
      )}
    </>
  );
}

function RunItem(props: {
  run: IRun;
  open: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { open, run, trans } = props;
  return (
    <li>
      <button
        type="button"
        className="jp-HyperPod-item"
        title={run.run_id}
        onClick={open}
      >
        <span className="jp-HyperPod-item-name">{run.name}</span>
        <StateChip state={run.state} reason={run.reason} trans={trans} />
        <span className="jp-HyperPod-item-detail">
          {run.reason ?? whenText(run, trans)}
        </span>
      </button>
    </li>
  );
}

function whenText(run: IRun, trans: TranslationBundle): string {
  const took = durationText(run.started_at, run.ended_at, trans);
  const when = momentText(run.submitted_at);
  return [run.cluster, when, took].filter(Boolean).join(' · ');
}

function NoRuns({ trans }: { trans: TranslationBundle }): JSX.Element {
  return (
    <div className="jp-HyperPod-Message">
      <p>{trans.__('No runs yet. Try one in a notebook cell:')}</p>
      <p>
        <code>{MAGIC}</code>
      </p>
      <p>{trans.__('or in a terminal:')}</p>
      <p>
        <code>{COMMAND}</code>
      </p>
    </div>
  );
}
