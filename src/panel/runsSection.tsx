import { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useRows } from '../components/useRows';
import { useTick } from '../components/useTick';
import { filterRuns, IRunFilter } from '../runs/filter';
import { canCancel, runEntries } from '../runs/listMenu';
import { RunsModel } from '../runs/model';
import { runNames } from '../runs/names';
import { StateFilter } from '../runs/stateFilter';
import { IRun } from '../runs/types';
import type { IPanelActions } from './actions';
import { groupRuns } from './runGroups';
import type { NumbersModel } from '../training/numbersModel';
import { RunRow } from './runRow';
import { PanelSection } from './section';
import { TimeLimits } from './timeLimits';

/** What one types is the same in all languages. */
const MAGIC = '%%hyperpod';
const COMMAND = "hpj submit -c 'echo hello'";

/** The states that the panel has room for. */
const STATES = ['running', 'waiting', 'failed', 'succeeded'];

/**
 * The user's runs: those at work first, then by day.
 */
export class RunsSection extends PanelSection {
  constructor(
    model: RunsModel,
    numbers: NumbersModel,
    limits: TimeLimits,
    actions: IPanelActions,
    trans: TranslationBundle
  ) {
    super(model.changed, trans.__('Runs'), trans);
    this.addClass('jp-HyperPod-Runs');
    this._model = model;
    this._numbers = numbers;
    this._limits = limits;
    this._actions = actions;
    limits.changed.connect(() => this.update(), this);
    numbers.changed.connect(() => this.update(), this);
    model.changed.connect(this._look, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      Signal.clearData(this);
      super.dispose();
    }
  }

  protected override onOpen(isOpen: boolean): void {
    if (isOpen) {
      this._model.start();
      this._look();
    }
  }

  protected override renderControls(): React.ReactNode {
    const { openRuns } = this._actions;
    const { loaded, more, runs } = this._model;
    return (
      openRuns &&
      loaded && (
        <button
          type="button"
          className="jp-HyperPod-link"
          title={this.trans.__('Open all runs in a page')}
          onClick={openRuns}
        >
          {this.trans.__('All (%1)', more ? `${runs.length}+` : runs.length)}
        </button>
      )
    );
  }

  protected override renderContent(): React.ReactNode {
    const { _model: model, trans } = this;
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
        {model.loaded && model.runs.length === 0 && (
          <NoRuns actions={this._actions} trans={trans} />
        )}
        {model.runs.length > 0 && (
          <RunList
            model={model}
            limits={this._limits}
            numbers={this._numbers}
            isShown={this.isVisible}
            actions={this._actions}
            trans={trans}
          />
        )}
      </>
    );
  }

  private _look(): void {
    if (this.isOpen) {
      this._limits.look(this._model.runs);
    }
  }

  private readonly _model: RunsModel;
  private readonly _numbers: NumbersModel;
  private readonly _limits: TimeLimits;
  private readonly _actions: IPanelActions;
}

function RunList(props: {
  model: RunsModel;
  limits: TimeLimits;
  numbers: NumbersModel;
  isShown: boolean;
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, isShown, limits, model, numbers, trans } = props;
  useTick(isShown);
  const [filter, setFilter] = React.useState<IRunFilter>({
    text: '',
    states: new Set()
  });
  const field = React.useRef<HTMLInputElement>(null);
  const names = runNames(model.runs);
  const groups = groupRuns(filterRuns(model.runs, names, filter), trans);
  const found = groups.flatMap(group => group.runs);
  const byIds = (ids: readonly string[]) =>
    found.filter(run => ids.includes(run.run_id));
  const cancel = (runs: readonly IRun[]) => {
    const active = runs.filter(canCancel);
    if (active.length > 0) {
      actions.cancel(active);
    }
  };
  const rows = useRows(
    found.map(run => run.run_id),
    { open: actions.openRun, remove: ids => cancel(byIds(ids)) }
  );
  const onKeyDown = (event: React.KeyboardEvent<HTMLElement>) => {
    if (event.key === '/' && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.current?.focus();
    } else {
      rows.onKeyDown(event);
    }
  };
  return (
    <>
      <FilterBar
        runs={model.runs}
        filter={filter}
        change={setFilter}
        field={field}
        trans={trans}
      />
      {rows.chosen.size > 0 && (
        <ChosenBar
          count={rows.chosen.size}
          active={byIds([...rows.chosen]).filter(canCancel)}
          cancel={cancel}
          clear={rows.clear}
          trans={trans}
        />
      )}
      <div className="jp-HyperPod-PanelSection-content" onKeyDown={onKeyDown}>
        {groups.map(({ label, runs }) => (
          <React.Fragment key={label}>
            <h4 className="jp-HyperPod-Rows-head">{label}</h4>
            <ul className="jp-HyperPod-Rows" aria-label={label}>
              {runs.map(run => (
                <RunRow
                  key={run.run_id}
                  run={run}
                  name={names.get(run.run_id) ?? run.name}
                  limit={limits.of(run.run_id)}
                  numbers={numbers.of(run.run_id)}
                  row={rows.rowProps(run.run_id)}
                  entries={() =>
                    runEntries(byIds(rows.meant(run.run_id)), actions, trans)
                  }
                  actions={actions}
                  trans={trans}
                />
              ))}
            </ul>
          </React.Fragment>
        ))}
        {found.length === 0 && (
          <p className="jp-HyperPod-Message" role="status">
            {trans.__('No run matches the filter.')}
          </p>
        )}
        {model.more && (
          <button
            type="button"
            className="jp-HyperPod-link jp-HyperPod-PanelSection-more"
            onClick={() => void model.loadMore()}
          >
            {trans.__('Show older runs')}
          </button>
        )}
      </div>
    </>
  );
}

/** A field for words, and a toggle for each state. */
function FilterBar(props: {
  runs: readonly IRun[];
  filter: IRunFilter;
  change: (filter: IRunFilter) => void;
  field: React.RefObject<HTMLInputElement>;
  trans: TranslationBundle;
}): JSX.Element {
  const { change, field, filter, runs, trans } = props;
  return (
    <div className="jp-HyperPod-RunFilter" role="search">
      <input
        ref={field}
        type="search"
        className="jp-HyperPod-input"
        placeholder={trans.__('Filter')}
        aria-label={trans.__('Filter runs')}
        value={filter.text}
        onChange={event => change({ ...filter, text: event.target.value })}
        onKeyDown={event => {
          if (event.key === 'Escape') {
            change({ text: '', states: new Set() });
          }
        }}
      />
      <StateFilter
        runs={runs}
        offered={STATES}
        states={filter.states}
        change={states => change({ ...filter, states })}
        trans={trans}
      />
    </div>
  );
}

/** What can be done to several runs at once. */
function ChosenBar(props: {
  count: number;
  active: readonly IRun[];
  cancel: (runs: readonly IRun[]) => void;
  clear: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { active, cancel, clear, count, trans } = props;
  return (
    <div className="jp-HyperPod-ChosenBar" role="status">
      <span className="jp-HyperPod-ChosenBar-count">
        {trans.__('%1 selected', count)}
      </span>
      {active.length > 0 && (
        <button
          type="button"
          className="jp-HyperPod-button jp-mod-warn"
          onClick={() => cancel(active)}
        >
          {trans.__('Cancel %1', active.length)}
        </button>
      )}
      <button type="button" className="jp-HyperPod-button" onClick={clear}>
        {trans.__('Clear')}
      </button>
    </div>
  );
}

function NoRuns(props: {
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { newRun } = props.actions;
  const { trans } = props;
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
      {newRun && (
        <button
          type="button"
          className="jp-HyperPod-button"
          onClick={() => newRun(null)}
        >
          {trans.__('New run')}
        </button>
      )}
    </div>
  );
}
