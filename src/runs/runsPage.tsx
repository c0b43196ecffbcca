import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { below, IMenuEntry, openMenu } from '../components/menu';
import { SignalWidget } from '../components/signalWidget';
import { useRows } from '../components/useRows';
import { useTick } from '../components/useTick';
import type { NumbersModel } from '../training/numbersModel';
import {
  canCancel,
  canDelete,
  IListActions,
  MOST_COMPARED,
  runEntries
} from './listMenu';
import { RunsModel } from './model';
import { runNames } from './names';
import { RunsBar } from './runsBar';
import { groupRow, RunsTable } from './runsTable';
import {
  FIRST_VIEW,
  groupedRuns,
  IRunGroup,
  IRunsView,
  isFiltered,
  metricNames,
  RunColumn,
  shownRuns,
  sortedBy
} from './runsView';
import { IRun } from './types';
import { RunsViews } from './views';

/** Number of rows drawn at first, and added each time older ones are requested. */
const ROWS = 200;

/**
 * What the page does with the application.
 */
export interface IRunsActions extends IListActions {
  /** Ask what to run; null: there is no command for it. */
  readonly newRun: (() => void) | null;
  /** Ask for the name of a view. */
  nameView(proposal: string): Promise<string | null>;
}

interface IProps {
  readonly model: RunsModel;
  readonly numbers: Pick<NumbersModel, 'changed' | 'of'>;
  readonly views: RunsViews;
  readonly actions: IRunsActions;
  readonly trans: TranslationBundle;
}

/**
 * All runs in the main area: a table that is filtered, sorted and grouped here, of the runs that the rest of the page knows too.
 */
export class RunsPage extends SignalWidget {
  constructor(private readonly _options: IProps) {
    super(_options.model.changed);
    this.addClass('jp-HyperPod-RunsPage');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _options.trans.__('Runs'));
    _options.views.changed.connect(() => this.update(), this);
    _options.model.changed.connect(this._fill, this);
    _options.numbers.changed.connect(() => this.update(), this);
  }

  /** Clear the filter; order, groups and columns stay. */
  showAll(): void {
    const { views } = this._options;
    const { cluster, states, text } = FIRST_VIEW;
    views.show({ ...views.view, cluster, states, text });
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._options.model.start();
    this._fill();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.update();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this.update();
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
    void this._focusRow();
  }

  /** The row where Tab would come to, once it is drawn. */
  private async _focusRow(): Promise<void> {
    await this.renderPromise;
    if (document.activeElement === this.node) {
      this.node.querySelector<HTMLElement>('[data-row][tabindex="0"]')?.focus();
    }
  }

  protected override render(): JSX.Element {
    return <Runs {...this._options} isShown={this.isVisible} />;
  }

  /** The panel needs fewer runs than there are rows here: once, the others are read too. */
  private _fill(): void {
    const { loaded, more, runs } = this._options.model;
    if (loaded && !this._isFilled) {
      this._isFilled = true;
      if (more && runs.length < ROWS) {
        void this._options.model.loadMore(ROWS - runs.length);
      }
    }
  }

  private _isFilled = false;
}

function Runs(props: IProps & { isShown: boolean }): JSX.Element {
  const { actions, isShown, model, numbers, trans, views } = props;
  const { view } = views;
  useTick(isShown && model.runs.length > 0);
  const [most, setMost] = React.useState(ROWS);
  const [folded, setFolded] = React.useState<ReadonlySet<string>>(new Set());
  const field = React.useRef<HTMLInputElement>(null);
  const names = runNames(model.runs);
  const found = shownRuns(model.runs, names, view, id => numbers.of(id));
  const groups = groupedRuns(found.slice(0, most), view.group, trans);
  const rows = useRows(rowIds(groups, folded), {
    checks: true,
    open: (id, pin) => {
      const group = groups.find(one => groupRow(one) === id);
      if (group && group.label !== null) {
        setFolded(toggled(folded, id));
      } else {
        actions.openRun(id, pin);
      }
    },
    remove: ids => endRuns(byIds(found, ids), actions)
  });
  const older = () => {
    if (model.more && found.length < most + ROWS) {
      void model.loadMore(ROWS);
    }
    setMost(most + ROWS);
  };
  const onKeyDown = (event: React.KeyboardEvent<HTMLElement>) => {
    const isTyped = event.target instanceof HTMLInputElement;
    if (event.key === '/' && !isTyped && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.current?.focus();
    } else {
      rows.onKeyDown(event);
    }
  };
  return (
    <div className="jp-HyperPod-RunsPage-all" onKeyDown={onKeyDown}>
      <RunsBar
        runs={model.runs}
        views={views}
        nameView={proposal => actions.nameView(proposal)}
        field={field}
        trans={trans}
      />
      {model.error && (
        <ErrorMessage
          error={model.error}
          trans={trans}
          retry={() => void model.refresh()}
        />
      )}
      <div className="jp-HyperPod-RunsTable">
        <RunsTable
          groups={groups}
          folded={folded}
          names={names}
          numbersOf={id => numbers.of(id)}
          view={{ ...view, columns: usedColumns(view, found, numbers) }}
          rows={rows}
          actions={{
            sort: column => views.show(sortedBy(view, column)),
            chooseMetric: button =>
              openMenu(
                metricEntries(found, numbers, views, trans),
                below(button)
              ),
            menu: (id, at) =>
              openMenu(
                runEntries(byIds(found, rows.meant(id)), actions, trans),
                at
              )
          }}
          trans={trans}
        />
        {found.length === 0 && (
          <Nothing {...props} isFiltered={isFiltered(view)} />
        )}
      </div>
      <Foot
        chosen={byIds(found, [...rows.chosen])}
        found={Math.min(found.length, most)}
        older={found.length > most || model.more ? older : null}
        isMore={model.more || found.length > most}
        clear={rows.clear}
        actions={actions}
        trans={trans}
      />
    </div>
  );
}

/** Cancel runs that are at work; where there are none, delete them. */
function endRuns(runs: readonly IRun[], actions: IRunsActions): void {
  const active = runs.filter(canCancel);
  const ended = runs.filter(canDelete);
  if (active.length > 0) {
    actions.cancel(active);
  } else if (ended.length > 0) {
    actions.remove(ended);
  }
}

/** The numbers that the column of numbers can show. */
function metricEntries(
  runs: readonly IRun[],
  numbers: Pick<NumbersModel, 'of'>,
  views: RunsViews,
  trans: TranslationBundle
): readonly (IMenuEntry | null)[] {
  const { view } = views;
  const entry = (label: string, metric: string | null) => ({
    label,
    isOn: view.metric === metric,
    run: () => views.show({ ...view, metric })
  });
  const names = metricNames(runs, id => numbers.of(id));
  const isAbsent = view.metric !== null && !names.includes(view.metric);
  return [
    entry(trans.__('Newest Number of Each Run'), null),
    null,
    ...[...names, ...(isAbsent ? [view.metric] : [])].map(name =>
      entry(name, name)
    )
  ];
}

/** The columns without those in which nothing would stand. */
function usedColumns(
  { columns }: IRunsView,
  runs: readonly IRun[],
  numbers: Pick<NumbersModel, 'of'>
): readonly RunColumn[] {
  return columns.filter(column => {
    if (column === 'numbers') {
      return runs.some(run => numbers.of(run.run_id) !== undefined);
    }
    return (
      (column !== 'queue' && column !== 'notebook') ||
      runs.some(run => run[column] !== null)
    );
  });
}

/** The rows as they stand, heads of groups too. */
function rowIds(
  groups: readonly IRunGroup[],
  folded: ReadonlySet<string>
): readonly string[] {
  return groups.flatMap(group => {
    const id = groupRow(group);
    const runs = folded.has(id) ? [] : group.runs.map(run => run.run_id);
    return group.label === null ? runs : [id, ...runs];
  });
}

function byIds(runs: readonly IRun[], ids: readonly string[]): IRun[] {
  const wanted = new Set(ids);
  return runs.filter(run => wanted.has(run.run_id));
}

function toggled(all: ReadonlySet<string>, one: string): ReadonlySet<string> {
  const next = new Set(all);
  if (!next.delete(one)) {
    next.add(one);
  }
  return next;
}

/** Why there is no row. */
function Nothing(props: IProps & { isFiltered: boolean }): JSX.Element | null {
  const { actions, model, trans, views } = props;
  const { newRun } = actions;
  if (!model.loaded) {
    return model.error ? null : (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  return (
    <div className="jp-HyperPod-Message">
      <p role="status">
        {props.isFiltered
          ? trans.__('No run matches the filter.')
          : trans.__('No runs yet.')}
      </p>
      {props.isFiltered ? (
        <button
          type="button"
          className="jp-HyperPod-button"
          onClick={() => {
            const { cluster, states, text } = FIRST_VIEW;
            views.show({ ...views.view, cluster, states, text });
          }}
        >
          {trans.__('Clear filters')}
        </button>
      ) : (
        newRun && (
          <button type="button" className="jp-HyperPod-button" onClick={newRun}>
            {trans.__('New run')}
          </button>
        )
      )}
    </div>
  );
}

/** How many runs are in view; of those that are chosen, what can be done to them. */
function Foot(props: {
  chosen: readonly IRun[];
  found: number;
  isMore: boolean;
  older: (() => void) | null;
  clear: () => void;
  actions: IRunsActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, chosen, clear, found, isMore, older, trans } = props;
  const { compare, runAgain } = actions;
  const active = chosen.filter(canCancel);
  const ended = chosen.filter(canDelete);
  return (
    <div className="jp-HyperPod-RunsPage-foot" data-chosen={chosen.length > 0}>
      <span role="status">
        {chosen.length > 0
          ? trans.__('%1 selected', chosen.length)
          : isMore
            ? trans.__('%1 newest runs', found)
            : trans._n('%1 run', '%1 runs', found)}
      </span>
      {chosen.length > 0 ? (
        <>
          {active.length > 0 && (
            <button
              type="button"
              className="jp-HyperPod-button jp-mod-warn"
              onClick={() => actions.cancel(active)}
            >
              {trans.__('Cancel %1', active.length)}
            </button>
          )}
          {chosen.length === 1 && runAgain && (
            <button
              type="button"
              className="jp-HyperPod-button"
              onClick={() => runAgain(chosen[0])}
            >
              {trans.__('Run again')}
            </button>
          )}
          {compare && chosen.length > 1 && chosen.length <= MOST_COMPARED && (
            <button
              type="button"
              className="jp-HyperPod-button"
              onClick={() => compare(chosen)}
            >
              {trans.__('Compare %1', chosen.length)}
            </button>
          )}
          {ended.length > 0 && (
            <button
              type="button"
              className="jp-HyperPod-button jp-mod-warn"
              onClick={() => actions.remove(ended)}
            >
              {trans.__('Delete %1', ended.length)}
            </button>
          )}
          <button type="button" className="jp-HyperPod-button" onClick={clear}>
            {trans.__('Clear')}
          </button>
        </>
      ) : (
        older && (
          <button type="button" className="jp-HyperPod-link" onClick={older}>
            {trans.__('Show older runs')}
          </button>
        )
      )}
    </div>
  );
}
