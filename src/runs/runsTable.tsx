import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateIcon } from '../components/stateIcon';
import type { IRows } from '../components/useRows';
import { agoText, hoursText, momentText } from '../components/words';
import type { IRunNumbers } from '../training/client';
import { NumbersCell } from '../training/numbersCell';
import {
  IRunGroup,
  gpuHoursOf,
  IRunsView,
  RunColumn,
  secondsOf
} from './runsView';
import { IRun } from './types';
import { clockText, fullSizeText, sizeText } from './words';

/**
 * What the table does when its rows are used.
 */
export interface ITableActions {
  menu(runId: string, at: { readonly x: number; readonly y: number }): void;
  sort(column: RunColumn): void;
  /** Ask for the name whose numbers are shown. */
  chooseMetric(button: HTMLElement): void;
}

interface IProps {
  groups: readonly IRunGroup[];
  folded: ReadonlySet<string>;
  names: ReadonlyMap<string, string>;
  numbersOf: (runId: string) => IRunNumbers | undefined;
  view: IRunsView;
  rows: IRows;
  actions: ITableActions;
  trans: TranslationBundle;
}

/** The id of a group's row, which no run has. */
export function groupRow({ key, label }: IRunGroup): string {
  return `group ${key === null ? '' : '='}${label}`;
}

/**
 * Runs, one short row each, under the heads of their groups.
 */
export function RunsTable(props: IProps): JSX.Element {
  const { actions, folded, groups, rows, trans, view } = props;
  // The same ones as before where nothing changed, for the rows.
  const columns = React.useMemo(() => view.columns, [view.columns.join()]);
  // A row that says the same is not drawn again, so what it calls must not change.
  const latest = React.useRef({ actions, rows });
  latest.current = { actions, rows };
  const calls = React.useMemo<IRowCalls>(
    () => ({
      click: (id, event) => latest.current.rows.rowProps(id).onClick(event),
      focus: id => latest.current.rows.rowProps(id).onFocus(),
      check: (id, isRange) => latest.current.rows.check(id, isRange),
      menu: (id, at) => latest.current.actions.menu(id, at)
    }),
    []
  );
  return (
    <table aria-label={trans.__('Runs')}>
      <colgroup>
        <col className="jp-HyperPod-RunsTable-check" />
        {columns.map(column => (
          <col key={column} data-column={column} />
        ))}
      </colgroup>
      <Head {...props} />
      {groups.map(group => {
        const id = groupRow(group);
        const isFolded = folded.has(id);
        return (
          <tbody key={id}>
            {group.label !== null && (
              <GroupHead
                group={group}
                span={columns.length + 1}
                isFolded={isFolded}
                row={rows.rowProps(id)}
              />
            )}
            {!isFolded &&
              group.runs.map(run => {
                const { run_id: runId } = run;
                const { tabIndex } = rows.rowProps(runId);
                return (
                  <Row
                    key={runId}
                    run={run}
                    name={props.names.get(runId) ?? run.name}
                    took={tookText(run)}
                    gpuHours={columns.includes('gpuHours') ? hoursOf(run) : ''}
                    numbers={props.numbersOf(runId)}
                    started={agoOf(run.started_at, trans)}
                    submitted={agoOf(run.submitted_at, trans)}
                    columns={columns}
                    metric={view.metric}
                    isChosen={rows.chosen.has(runId)}
                    isStop={tabIndex === 0}
                    calls={calls}
                    trans={trans}
                  />
                );
              })}
          </tbody>
        );
      })}
    </table>
  );
}

/** The heads of the columns, and a box for all rows. */
function Head(props: IProps): JSX.Element {
  const { actions, folded, groups, rows, trans, view } = props;
  const shown = groups
    .filter(group => !folded.has(groupRow(group)))
    .flatMap(group => group.runs);
  const chosen = shown.filter(run => rows.chosen.has(run.run_id)).length;
  const isAll = shown.length > 0 && chosen === shown.length;
  return (
    <thead>
      <tr>
        <th scope="col">
          <input
            type="checkbox"
            aria-label={trans.__('Select all runs in view')}
            checked={isAll}
            ref={box => {
              if (box) {
                box.indeterminate = !isAll && chosen > 0;
              }
            }}
            onChange={() => (isAll ? rows.clear() : rows.checkAll())}
          />
        </th>
        {view.columns.map(column => {
          const isSorted = view.sort === column;
          const order = view.isFalling ? 'descending' : 'ascending';
          return (
            <th
              key={column}
              scope="col"
              data-column={column}
              aria-sort={isSorted ? order : 'none'}
            >
              <button
                type="button"
                className="jp-HyperPod-RunsTable-sort"
                onClick={() => actions.sort(column)}
              >
                {column === 'numbers' && view.metric !== null
                  ? view.metric
                  : columnLabel(column, trans)}
              </button>
              {column === 'numbers' && (
                <button
                  type="button"
                  className="jp-HyperPod-RunsTable-choose"
                  title={trans.__('Choose the number to show')}
                  aria-label={trans.__('Choose the number to show')}
                  aria-haspopup="menu"
                  onClick={event => actions.chooseMetric(event.currentTarget)}
                >
                  ▾
                </button>
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function GroupHead(props: {
  group: IRunGroup;
  span: number;
  isFolded: boolean;
  row: ReturnType<IRows['rowProps']>;
}): JSX.Element {
  const { group, isFolded, row, span } = props;
  const Caret = isFolded ? caretRightIcon.react : caretDownIcon.react;
  return (
    <tr className="jp-HyperPod-RunsTable-group">
      <th scope="rowgroup" colSpan={span}>
        <button
          type="button"
          aria-expanded={!isFolded}
          data-row={row['data-row']}
          tabIndex={row.tabIndex}
          onFocus={row.onFocus}
          onClick={row.onClick}
        >
          <Caret tag="span" width="16px" height="16px" />
          <span className="jp-HyperPod-RunsTable-label">{group.label}</span>
          <span className="jp-HyperPod-RunsTable-count">
            {group.runs.length}
          </span>
        </button>
      </th>
    </tr>
  );
}

interface IRowCalls {
  click(runId: string, event: React.MouseEvent): void;
  focus(runId: string): void;
  check(runId: string, isRange: boolean): void;
  menu(runId: string, at: { readonly x: number; readonly y: number }): void;
}

const Row = React.memo(function Row(props: {
  run: IRun;
  name: string;
  took: string;
  gpuHours: string;
  numbers: IRunNumbers | undefined;
  started: string;
  submitted: string;
  columns: readonly RunColumn[];
  metric: string | null;
  isChosen: boolean;
  /** Whether Tab comes to it. */
  isStop: boolean;
  calls: IRowCalls;
  trans: TranslationBundle;
}): JSX.Element {
  const { calls, columns, isChosen, isStop, name, run, trans } = props;
  const { run_id: runId } = run;
  return (
    <tr
      data-state={run.state}
      data-chosen={isChosen}
      onContextMenu={event => {
        event.preventDefault();
        event.stopPropagation();
        calls.menu(runId, { x: event.clientX, y: event.clientY });
      }}
    >
      <td>
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={trans.__('Select %1', name)}
          checked={isChosen}
          // The click handler toggles it, since it knows about Shift.
          onChange={() => undefined}
          onClick={event => calls.check(runId, event.shiftKey)}
        />
      </td>
      {columns.map(column =>
        column === 'name' ? (
          <td key={column} data-column={column}>
            <button
              type="button"
              className="jp-HyperPod-RunsTable-name"
              data-row={runId}
              tabIndex={isStop ? 0 : -1}
              title={name}
              onFocus={() => calls.focus(runId)}
              onClick={event => calls.click(runId, event)}
            >
              {name}
            </button>
          </td>
        ) : (
          <td
            key={column}
            data-column={column}
            title={hintOf(run, column, trans)}
            onClick={event => calls.click(runId, event)}
          >
            {cellOf(props, column)}
          </td>
        )
      )}
    </tr>
  );
});

/** The content of a cell. */
function cellOf(
  props: {
    run: IRun;
    numbers: IRunNumbers | undefined;
    metric: string | null;
    took: string;
    gpuHours: string;
    started: string;
    submitted: string;
    trans: TranslationBundle;
  },
  column: RunColumn
): React.ReactNode {
  const { run, trans } = props;
  switch (column) {
    case 'state':
      return <StateIcon state={run.state} trans={trans} />;
    case 'size':
      return sizeText(run, trans);
    case 'duration':
      return props.took;
    case 'gpuHours':
      return props.gpuHours;
    case 'started':
      return props.started;
    case 'submitted':
      return props.submitted;
    case 'id':
      return run.run_id;
    case 'numbers':
      return <NumbersCell numbers={props.numbers} metric={props.metric} />;
    default:
      return run[column];
  }
}

/** A cell's tooltip; the state's icon has its own. */
function hintOf(
  run: IRun,
  column: RunColumn,
  trans: TranslationBundle
): string | undefined {
  switch (column) {
    case 'state':
    case 'duration':
    case 'gpuHours':
    case 'numbers':
      return undefined;
    case 'size':
      return fullSizeText(run, trans);
    case 'started':
      return momentText(run.started_at);
    case 'submitted':
      return momentText(run.submitted_at);
    case 'id':
      return run.run_id;
    default:
      return run[column] ?? undefined;
  }
}

function tookText(run: IRun): string {
  const seconds = secondsOf(run);
  return seconds === null ? '' : clockText(seconds);
}

function hoursOf(run: IRun): string {
  const hours = gpuHoursOf(run);
  return hours === null ? '' : hoursText(hours);
}

function agoOf(iso: string | null, trans: TranslationBundle): string {
  return iso === null ? '' : agoText(iso, trans);
}

/** The head of a column. */
export function columnLabel(
  column: RunColumn,
  trans: TranslationBundle
): string {
  const labels: Readonly<Record<RunColumn, string>> = {
    state: trans.__('State'),
    name: trans.__('Name'),
    cluster: trans.__('Cluster'),
    queue: trans.__('Queue'),
    size: trans.__('Size'),
    duration: trans.__('Duration'),
    gpuHours: trans.__('GPU-hours'),
    started: trans.__('Started'),
    submitted: trans.__('Submitted'),
    notebook: trans.__('Notebook'),
    id: trans.__('Run ID'),
    numbers: trans.__('Newest number'),
    reason: trans.__('Reason')
  };
  return labels[column];
}
