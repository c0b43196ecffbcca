import * as React from 'react';

/**
 * The rows of a list with one tab stop: which has it, and which are chosen.
 */
export interface IRows {
  readonly chosen: ReadonlySet<string>;
  /** What a row's button gets. */
  rowProps(id: string): {
    readonly 'data-row': string;
    readonly tabIndex: number;
    readonly 'aria-pressed': true | undefined;
    readonly onClick: (event: React.MouseEvent) => void;
    readonly onFocus: () => void;
  };
  /** What the list gets. */
  readonly onKeyDown: (event: React.KeyboardEvent<HTMLElement>) => void;
  /** The rows that something is done to: those that are chosen if this is one of them, else this one alone. */
  meant(id: string): readonly string[];
  /** Choose none. */
  clear(): void;
  /** Choose a row or not, or all rows up to it from where the last one was chosen. */
  check(id: string, isRange: boolean): void;
  /** Choose all. */
  checkAll(): void;
}

export namespace IRows {
  export interface IOptions {
    /** Open a row; a double click or Enter pins it. */
    readonly open: (id: string, pin: boolean) => void;
    /** What the key Delete does to rows; several can be chosen where it does something. */
    readonly remove?: (ids: readonly string[]) => void;
    /** Rows have checkboxes: Space checks one, and who moves on or opens one leaves them checked. */
    readonly checks?: boolean;
  }
}

/**
 * Keys and clicks of a list: arrows move, Enter opens, Shift and Ctrl choose several, Escape none, Delete removes.
 */
export function useRows(
  ids: readonly string[],
  { checks = false, open, remove }: IRows.IOptions
): IRows {
  const [anchor, setAnchor] = React.useState<string | null>(null);
  const [all, setChosen] = React.useState<ReadonlySet<string>>(new Set());
  const chosen = new Set(ids.filter(id => all.has(id)));
  const { current, hold, setFocused } = useStop(ids);
  const choose = (next: Iterable<string>, from: string | null) => {
    setChosen(new Set(remove ? next : []));
    setAnchor(from);
  };
  const reach = (to: string) => {
    const begin = ids.indexOf(anchor ?? current ?? to);
    const end = ids.indexOf(to);
    const first = Math.min(Math.max(begin, 0), end);
    choose(ids.slice(first, Math.max(begin, end) + 1), anchor ?? current);
  };
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) {
      next.add(id);
    }
    choose(next, id);
  };
  const meant = (id: string) => (chosen.has(id) ? [...chosen] : [id]);
  const move = (event: React.KeyboardEvent<HTMLElement>, to: string) => {
    if (event.shiftKey) {
      reach(to);
    } else if (checks) {
      setAnchor(to);
    } else {
      choose([], to);
    }
    setFocused(to);
    rowOf(event.currentTarget, to)?.focus();
  };
  const onKeyDown = (event: React.KeyboardEvent<HTMLElement>) => {
    if (current === null || !(event.target instanceof HTMLElement)) {
      return;
    }
    if (event.target.dataset.row === undefined) {
      return;
    }
    const to = target(ids, current, event.key);
    const isControl = event.ctrlKey || event.metaKey;
    if (to !== undefined && !isControl && !event.altKey) {
      move(event, to);
    } else if (event.key === 'Enter' && !isControl && !event.altKey) {
      open(current, true);
    } else if (event.key === 'Delete' && remove) {
      remove(meant(current));
    } else if (event.key === 'Escape' && chosen.size > 0) {
      choose([], null);
    } else if (event.key === 'a' && isControl && remove) {
      choose(ids, current);
    } else if (event.key === ' ' && (isControl || checks)) {
      toggle(current);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return {
    chosen,
    meant,
    onKeyDown,
    clear: () => choose([], null),
    checkAll: () => choose(ids, current),
    check: (id, isRange) => {
      setFocused(id);
      if (isRange) {
        reach(id);
      } else {
        toggle(id);
      }
    },
    rowProps: id => ({
      'data-row': id,
      tabIndex: id === current ? 0 : -1,
      'aria-pressed': chosen.has(id) ? true : undefined,
      onFocus: () => hold(id),
      onClick: event => {
        if (remove && event.shiftKey) {
          reach(id);
        } else if (remove && (event.ctrlKey || event.metaKey)) {
          toggle(id);
        } else {
          if (!checks) {
            choose([], id);
          }
          open(id, event.detail > 1);
        }
      }
    })
  };
}

/**
 * The tab stop: the row that has or had the focus; where that is gone, the row in its place.
 *
 * @returns the stop, what is to be called when a row gets the focus, and what makes another row the stop
 */
function useStop(ids: readonly string[]): {
  current: string | null;
  hold: (id: string) => void;
  setFocused: (id: string) => void;
} {
  const [focused, setFocused] = React.useState<string | null>(null);
  const place = React.useRef(0);
  const at = focused === null ? 0 : ids.indexOf(focused);
  const current =
    ids[at < 0 ? place.current : at] ?? ids[ids.length - 1] ?? null;
  const held = React.useRef<{ row: Element; list: HTMLElement } | null>(null);
  React.useLayoutEffect(() => {
    place.current = current === null ? 0 : ids.indexOf(current);
    if (held.current?.row.isConnected === false) {
      const { list } = held.current;
      held.current = null;
      // The row with the focus is gone, or stands under another head now.
      if (document.activeElement === document.body) {
        (rowOf(list, current) ?? list).focus();
      }
    }
  });
  const hold = (id: string) => {
    setFocused(id);
    const row = document.activeElement;
    const list = row?.closest<HTMLElement>('.lm-Widget');
    held.current = row && list ? { row, list } : null;
  };
  return { current, hold, setFocused };
}

/** Where a key leads; undefined for a key that leads nowhere. */
function target(
  ids: readonly string[],
  current: string,
  key: string
): string | undefined {
  const at = ids.indexOf(current);
  switch (key) {
    case 'ArrowDown':
      return ids[Math.min(at + 1, ids.length - 1)];
    case 'ArrowUp':
      return ids[Math.max(at - 1, 0)];
    case 'Home':
      return ids[0];
    case 'End':
      return ids[ids.length - 1];
    default:
      return undefined;
  }
}

function rowOf(list: HTMLElement, id: string | null): HTMLElement | undefined {
  return Array.from(list.querySelectorAll<HTMLElement>('[data-row]')).find(
    row => row.dataset.row === id
  );
}
