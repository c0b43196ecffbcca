import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { Hint } from '../components/hint';
import { Notes } from '../components/notes';
import { Age } from './age';
import type { IClusterClient } from './client';
import {
  ITablePage,
  ITableQuery,
  TableKind,
  TableRow,
  valueText
} from './types';
import { ITableState, useTable } from './useTable';
import { ClusterView, useRefresh } from './view';

/**
 * A column of a table.
 */
export interface IColumn<N extends string = string> {
  /** The server's name, by which it sorts. */
  readonly name: N;
  readonly label: string;
  /** Whether the server can't sort by it. */
  readonly unsorted?: boolean;
  /** Whether it is left out where no row has a value. */
  readonly optional?: boolean;
  /** The cell; the value as text, where it isn't given. */
  render?(row: TableRow<N>): React.ReactNode;
}

/**
 * Rows that can be chosen, by their keys.
 */
export interface ISelection {
  readonly keys: ReadonlySet<string>;
  /** The key of a row. */
  keyOf(row: TableRow): string;
  /** Choose rows, or not. */
  choose(rows: readonly TableRow[], chosen: boolean): void;
}

interface IProps {
  label: string;
  columns: readonly IColumn[];
  load: (query: ITableQuery) => Promise<ITablePage>;
  /** Said when there is no row at all. */
  empty: string;
  /** What it is sorted by at first; the first column, where it isn't given. */
  sort?: string;
  /** Whether the server has but one order, and no filter for it unless `filtered` names one. */
  fixed?: boolean;
  /** What the server filters by, where that is one column. */
  filtered?: string;
  /** Whether rows can be chosen. */
  selection?: ISelection;
  /** What `load` leaves out besides what is typed: another choice begins with its first page. */
  choice?: unknown;
  /** For data of AWS: whether the table is visible. Then it is polled. */
  isShown?: () => boolean;
  /** The cluster: the table is read again whenever the cluster was. Its page has the age and the button that refreshes all. */
  view?: ClusterView;
  /** The page whose button reads the table again too. */
  refresher?: ClusterView;
  /** Stands between the head and the rows. */
  children?: React.ReactNode;
  trans: TranslationBundle;
}

/**
 * A table of which the server sorts, filters and cuts the rows.
 */
export function ServerTable(props: IProps): JSX.Element {
  const { empty, fixed = false, label, load, trans } = props;
  const table = useTable(
    load,
    props.sort ?? props.columns[0].name,
    props.isShown,
    props.choice,
    props.view
  );
  useRefresh(props.refresher, table.retry);
  // While the next page comes the one before stays, so that nothing jumps.
  const shown = React.useRef<ITablePage | null>(null);
  const isGone = table.error !== null && hasNone(table.error);
  shown.current = isGone ? null : (table.value ?? shown.current);
  const page = shown.current;
  const columns = shownColumns(props.columns, page, table.sort);
  const isHidden = page !== null && hidesAll(page, table.filter);
  return (
    <section className="jp-HyperPod-Table" aria-label={label}>
      <TableHead
        table={table}
        label={label}
        page={page}
        fixed={fixed}
        filtered={props.filtered}
        isLive={Boolean(props.view ?? props.refresher)}
        trans={trans}
      />
      {table.error && (
        <Refusal error={table.error} trans={trans} retry={table.retry} />
      )}
      {!page && !table.error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {!isGone && props.children}
      {page && (!props.view || page.problem || page.loading) && (
        <Age aged={page} trans={trans} />
      )}
      <Notes notes={page?.notes ?? []} />
      {page && !isHidden && (
        <Rows
          columns={columns}
          page={page}
          table={table}
          fixed={fixed}
          selection={props.selection}
          trans={trans}
        />
      )}
      {page?.rows.length === 0 && !isHidden && (
        <p className="jp-HyperPod-Message" role="status">
          {table.filter === '' ? empty : trans.__('No rows match the filter.')}
        </p>
      )}
    </section>
  );
}

/**
 * A table of one kind of a cluster's rows; it stays the same as long as it is shown.
 */
export function LoadedTable(
  props: Omit<IProps, 'load'> & {
    kind: TableKind;
    client: IClusterClient;
    cluster: string;
  }
): JSX.Element {
  const { client, cluster, kind, ...rest } = props;
  const load = React.useCallback(
    (query: ITableQuery) => client.table(cluster, kind, query),
    [client, cluster, kind]
  );
  return <ServerTable {...rest} load={load} />;
}

/** What is hidden says more than a table without rows. */
function hidesAll({ notes, rows }: ITablePage, filter: string): boolean {
  return filter === '' && rows.length === 0 && (notes ?? []).length > 0;
}

/** Code of a table that some clusters don't have. */
const NO_EVENTS = 'no_events';

/** Codes of what is no fault of anybody's. */
const NO_FAULTS = ['missing_right', NO_EVENTS];

/** Whether there is no such table: then nothing can be chosen in it. */
function hasNone(error: ApiError): boolean {
  return error.isMissing || error.code === NO_EVENTS;
}

/** Why there is no table. */
function Refusal(props: {
  error: ApiError;
  trans: TranslationBundle;
  retry: () => void;
}): JSX.Element {
  const { error, trans } = props;
  return NO_FAULTS.includes(error.code) ? (
    <>
      <Notes notes={[error.message]} />
      {error.hint && <Hint hint={error.hint} trans={trans} />}
    </>
  ) : (
    <ErrorMessage {...props} />
  );
}

function Rows(props: {
  columns: readonly IColumn[];
  page: ITablePage;
  table: ITableState;
  fixed: boolean;
  selection?: ISelection;
  trans: TranslationBundle;
}): JSX.Element {
  const { columns, fixed, page, selection, table, trans } = props;
  return (
    <div className="jp-HyperPod-Table-scroll">
      <table aria-busy={table.value === null}>
        <thead>
          <tr>
            {selection && (
              <ChooseAll rows={page.rows} selection={selection} trans={trans} />
            )}
            {columns.map(column =>
              fixed || column.unsorted ? (
                <th key={column.name} scope="col">
                  {column.label}
                </th>
              ) : (
                <HeadCell key={column.name} column={column} table={table} />
              )
            )}
          </tr>
        </thead>
        <tbody>
          {page.rows.map((row, at) => (
            <tr key={at}>
              {selection && (
                <ChooseCell row={row} selection={selection} trans={trans} />
              )}
              {columns.map(column => (
                <td key={column.name}>
                  {column.render
                    ? column.render(row)
                    : valueText(row[column.name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Chooses all rows of the page, or none. */
function ChooseAll(props: {
  rows: readonly TableRow[];
  selection: ISelection;
  trans: TranslationBundle;
}): JSX.Element {
  const { rows, selection, trans } = props;
  const chosen = rows.filter(row => selection.keys.has(selection.keyOf(row)));
  const all = rows.length > 0 && chosen.length === rows.length;
  return (
    <th scope="col">
      <input
        type="checkbox"
        aria-label={trans.__('Select all rows on this page')}
        checked={all}
        ref={box => {
          if (box) {
            box.indeterminate = !all && chosen.length > 0;
          }
        }}
        onChange={event => selection.choose(rows, event.target.checked)}
      />
    </th>
  );
}

function ChooseCell(props: {
  row: TableRow;
  selection: ISelection;
  trans: TranslationBundle;
}): JSX.Element {
  const { row, selection, trans } = props;
  const key = selection.keyOf(row);
  return (
    <td>
      <input
        type="checkbox"
        aria-label={trans.__('Select %1', key)}
        checked={selection.keys.has(key)}
        onChange={event => selection.choose([row], event.target.checked)}
      />
    </td>
  );
}

/** The columns without those in which nothing would stand; what the table is sorted by stays. */
function shownColumns(
  columns: readonly IColumn[],
  page: ITablePage | null,
  sort: string
): readonly IColumn[] {
  const rows = page?.rows ?? [];
  return columns.filter(
    column =>
      !column.optional ||
      sort.replace(/^-/, '') === column.name ||
      rows.some(row => hasText(column, row))
  );
}

function hasText(column: IColumn, row: TableRow): boolean {
  const shown = column.render
    ? column.render(row)
    : valueText(row[column.name]);
  return shown !== '' && shown !== null && shown !== undefined;
}

function HeadCell(props: { column: IColumn; table: ITableState }): JSX.Element {
  const { column, table } = props;
  const rising = table.sort === column.name;
  const falling = table.sort === `-${column.name}`;
  return (
    <th
      scope="col"
      aria-sort={rising ? 'ascending' : falling ? 'descending' : 'none'}
    >
      <button
        type="button"
        className="jp-HyperPod-Table-sort"
        onClick={() => table.sortBy(column.name)}
      >
        {column.label}
      </button>
    </th>
  );
}

function TableHead(props: {
  table: ITableState;
  label: string;
  page: ITablePage | null;
  fixed: boolean;
  filtered?: string;
  isLive: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { filtered, fixed, isLive, label, page, table, trans } = props;
  const total = page?.total ?? null;
  return (
    <div className="jp-HyperPod-Table-head">
      <h2>{label}</h2>
      <span className="jp-HyperPod-count" role="status">
        {total === null ? '' : trans._n('%1 row', '%1 rows', total)}
      </span>
      {(!fixed || filtered) && (
        <input
          className="jp-HyperPod-input"
          type="search"
          value={table.filter}
          placeholder={filtered ?? trans.__('Filter')}
          aria-label={filtered ?? trans.__('Filter %1', label)}
          onChange={event => table.filterBy(event.target.value)}
        />
      )}
      {!isLive && (
        <button
          type="button"
          className="jp-HyperPod-button"
          onClick={table.retry}
        >
          {trans.__('Refresh')}
        </button>
      )}
      <Pager table={table} page={page} trans={trans} />
    </div>
  );
}

function Pager(props: {
  table: ITableState;
  page: ITablePage | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { page, table, trans } = props;
  if (table.page === 0 && !page?.next) {
    return null;
  }
  return (
    <>
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={table.page === 0}
        onClick={() => table.backward()}
      >
        {trans.__('Previous page')}
      </button>
      <span className="jp-HyperPod-count">
        {trans.__('Page %1', table.page + 1)}
      </span>
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={!page?.next}
        onClick={() => table.forward()}
      >
        {trans.__('Next page')}
      </button>
    </>
  );
}
