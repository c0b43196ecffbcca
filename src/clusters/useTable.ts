import * as React from 'react';

import { ILoaded, useLoaded } from '../components/useLoaded';
import { ITablePage, ITableQuery } from './types';
import { ClusterView, useLive } from './view';

/** Rows of a page. */
const LIMIT = 50;

/** How often a table is read again of which more is on its way. */
const SOON_MS = 1000;

/** How often a table is read again whose rows are about to change. */
const CHANGING_MS = 10_000;

/** How often a table is read again that shows what AWS knows. */
const POLL_MS = 60_000;

/** Milliseconds after the last key after which a filter is applied. */
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
 * @param isShown - whether the table is visible: then it is polled; omit it where only the user reloads it
 * @param choice - which rows there are at all: those of another begin with their first page
 * @param view - the cluster: whenever it was read again, so is the table
 */
export function useTable(
  load: (query: ITableQuery) => Promise<ITablePage>,
  first: string,
  isShown?: () => boolean,
  choice?: unknown,
  view?: ClusterView
): ITableState {
  const [sort, setSort] = React.useState(first);
  const [filter, setFilter] = React.useState('');
  const [typed, setTyped] = React.useState('');
  const { cursor, cursors, setCursors } = useCursors(choice);

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

  const forced = React.useRef(false);
  const read = React.useCallback(() => {
    const refresh = forced.current;
    forced.current = false;
    return load({ limit: LIMIT, cursor, sort, filter: typed, refresh });
  }, [load, cursor, sort, typed]);
  const loaded = useLoaded(read);
  useRenewal(loaded, isShown);
  useLive(view, loaded.renew);
  return {
    ...loaded,
    retry: () => {
      // While it is being read there is nothing to read again: a slow answer would never be shown.
      if (loaded.value || loaded.error) {
        forced.current = true;
        loaded.retry();
      }
    },
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

/** Cursors of the pages up to the one that is shown; none where something else is chosen. */
function useCursors(choice: unknown): {
  readonly cursors: readonly string[];
  /** That of the page that is shown. */
  readonly cursor: string | undefined;
  readonly setCursors: (cursors: readonly string[]) => void;
} {
  const [cursors, setCursors] = React.useState<readonly string[]>([]);
  const [chosen, setChosen] = React.useState(choice);
  if (chosen !== choice) {
    setChosen(choice);
    setCursors([]);
  }
  return { cursors, cursor: cursors[cursors.length - 1], setCursors };
}

/**
 * Polls a page while it is visible: soon if more rows are loading. A scheduler's current answer has no age, and is read again only on request.
 */
function useRenewal(
  loaded: ILoaded<ITablePage>,
  isShown?: () => boolean
): void {
  const { renew, value } = loaded;
  const last = React.useRef(renew);
  last.current = renew;
  React.useEffect(() => {
    if (!isShown || !(value?.as_of || value?.loading)) {
      return;
    }
    const timer = setInterval(
      () => {
        if (isShown()) {
          last.current();
        }
      },
      value.loading ? SOON_MS : value.changing ? CHANGING_MS : POLL_MS
    );
    return () => clearInterval(timer);
  }, [isShown, value]);
}
