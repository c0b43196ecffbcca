import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { ITablePage, ITableQuery, TableRow } from './types';
import { ITableState, useTable } from './useTable';

/**
 * A column of a table.
 */
export interface IColumn {
  /** The server's name, by which it sorts. */
  readonly name: string;
  readonly label: string;
  /** The cell; the value as text, where it isn't given. */
  readonly render?: (row: TableRow) => React.ReactNode;
}

interface IProps {
  label: string;
  columns: readonly IColumn[];
  load: (query: ITableQuery) => Promise<ITablePage>;
  /** Said when there is no row at all. */
  empty: string;
  trans: TranslationBundle;
}

/**
 * A table of which the server sorts, filters and cuts the rows.
 */
export function ServerTable(props: IProps): JSX.Element {
  const { columns, empty, label, load, trans } = props;
  const table = useTable(load, columns[0].name);
  // While the next page comes the one before stays, so that nothing jumps.
  const shown = React.useRef<ITablePage | null>(null);
  shown.current = table.value ?? shown.current;
  const page = shown.current;
  return (
    <section className="jp-HyperPod-Table" aria-label={label}>
      <TableHead table={table} label={label} page={page} trans={trans} />
      {table.error && (
        <ErrorMessage error={table.error} trans={trans} retry={table.retry} />
      )}
      {page && (
        <div className="jp-HyperPod-Table-scroll">
          <table aria-busy={table.value === null}>
            <thead>
              <tr>
                {columns.map(column => (
                  <HeadCell key={column.name} column={column} table={table} />
                ))}
              </tr>
            </thead>
            <tbody>
              {page.rows.map((row, at) => (
                <tr key={at}>
                  {columns.map(column => (
                    <td key={column.name}>
                      {column.render
                        ? column.render(row)
                        : cellText(row[column.name])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page?.rows.length === 0 && (
        <p className="jp-HyperPod-Message" role="status">
          {table.filter === '' ? empty : trans.__('No row has these words.')}
        </p>
      )}
    </section>
  );
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
  trans: TranslationBundle;
}): JSX.Element {
  const { label, page, table, trans } = props;
  const total = page?.total ?? null;
  return (
    <div className="jp-HyperPod-Table-head">
      <h2>{label}</h2>
      <span className="jp-HyperPod-count" role="status">
        {total === null ? '' : trans._n('%1 row', '%1 rows', total)}
      </span>
      <input
        className="jp-HyperPod-input"
        type="search"
        value={table.filter}
        placeholder={trans.__('Filter')}
        aria-label={trans.__('Filter %1', label)}
        onChange={event => table.filterBy(event.target.value)}
      />
      <button
        type="button"
        className="jp-HyperPod-button"
        onClick={table.retry}
      >
        {trans.__('Refresh')}
      </button>
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
        {trans.__('Page before')}
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

function cellText(value: TableRow[string] | undefined): string {
  if (value === null || value === undefined) {
    return '';
  }
  return Array.isArray(value) ? value.join(', ') : String(value);
}
