import * as React from 'react';

import { ILoaded, useLoaded } from '../components/useLoaded';
import { ITablePage, ITableQuery } from './types';

/** Rows of a page. */
const LIMIT = 50;

/** Typing is over when no key was pressed for so long. */
const TYPING_MS = 250;

/**
 * A table that lies on the server: one page of it, and how to get another.
 */
export interface ITableState extends ILoaded<ITablePage> {
  readonly sort: string;
  readonly filter: string;
  /** The page's number, from 0. */
  readonly page: number;
  sortBy(column: string): void;
  filterBy(text: string): void;
  forward(): void;
  backward(): void;
}

/**
 * Reads a table page by page.
 *
 * @param load - asks the server
 * @param first - the column that it is sorted by at first
 */
export function useTable(
  load: (query: ITableQuery) => Promise<ITablePage>,
  first: string
): ITableState {
  const [sort, setSort] = React.useState(first);
  const [filter, setFilter] = React.useState('');
  const [typed, setTyped] = React.useState('');
  const [cursors, setCursors] = React.useState<readonly string[]>([]);
  const cursor = cursors[cursors.length - 1];

  React.useEffect(() => {
    if (filter === typed) {
      return;
    }
    const timer = setTimeout(() => {
      setTyped(filter);
      setCursors([]);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [filter, typed]);

  const read = React.useCallback(
    () => load({ limit: LIMIT, cursor, sort, filter: typed }),
    [load, cursor, sort, typed]
  );
  const loaded = useLoaded(read);
  return {
    ...loaded,
    sort,
    filter,
    page: cursors.length,
    sortBy: column => {
      setSort(sort === column ? `-${column}` : column);
      setCursors([]);
    },
    filterBy: setFilter,
    forward: () => {
      if (loaded.value?.next) {
        setCursors([...cursors, loaded.value.next]);
      }
    },
    backward: () => setCursors(cursors.slice(0, -1))
  };
}
