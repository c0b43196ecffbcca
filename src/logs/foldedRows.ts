import { ILogRow, IRowRange, LogWindow } from './window';

/** More ranks that say the same stand in another row, so that a window always has a few. */
export const MOST_FOLDED = 64;

/** Maximum number of lines in a block that ranks repeat. */
const MOST_LINES = 32;

/** More lines of nodes stand in another row. */
const MOST_NODE_LINES = 2000;

/**
 * A row as it is drawn: one of the window's, or several in one.
 */
export interface IShownRow {
  /** The row, or the first one of those that are folded. */
  readonly row: ILogRow;
  /** The texts that are drawn: more than one when ranks repeat a block. */
  readonly texts: readonly string[];
  /** A row of everyone who said it, when these are folded. */
  readonly folded: readonly ILogRow[] | null;
  /** Lines of nodes of which only the number is drawn; 0 for others. */
  readonly hidden: number;
  /** Nodes that wrote those. */
  readonly nodes: number;
  /** It is the first one of some that were folded and are shown one by one. */
  readonly isLead: boolean;
}

/** Rows of the window that are drawn as one, or one row. */
interface IItem {
  /** The window's number of the first row. */
  readonly begin: number;
  readonly size: number;
  /** The lines that are drawn of it; 0 when these are lines of nodes, of which only the number is drawn. */
  readonly lines: number;
  /** Rows that say the same have the same one, whether they are folded or not. */
  readonly group: number;
}

/**
 * What is drawn of a window: consecutive lines, or blocks of lines, of different ranks with the same text are one row,
 * and so are consecutive lines of nodes. Such a row can be opened.
 *
 * The items part the window's rows without a gap: no line is ever in none or in two of them. Items have numbers that
 * stay with them, as the window's rows do. `sync` brings them in step, with work for what is new or different only.
 */
export class FoldedRows {
  constructor(window: LogWindow) {
    this._window = window;
    this.sync();
  }

  /** The number of the first item. */
  get first(): number {
    return this._first;
  }

  /** The number behind the last item. */
  get end(): number {
    return this._first + this._items.length;
  }

  /** Ranks that say the same are folded. */
  get folds(): boolean {
    return this._folds;
  }

  set folds(value: boolean) {
    if (value !== this._folds) {
      this._folds = value;
      this._opened.clear();
      this.sync();
      this._rebuild();
    }
  }

  /** Consecutive lines of nodes are folded. */
  get foldsNodes(): boolean {
    return this._foldsNodes;
  }

  set foldsNodes(value: boolean) {
    if (value !== this._foldsNodes) {
      this._foldsNodes = value;
      this._opened.clear();
      this.sync();
      this._rebuild();
    }
  }

  /** What is drawn under a number; undefined when there is nothing. */
  row(number: number): IShownRow | undefined {
    const at = number - this._first;
    const item = this._items[at];
    const row = item && this._window.row(item.begin);
    if (!item || !row) {
      return undefined;
    }
    const group = (other: number) => this._items[other]?.group;
    const isLead = item.group === group(at + 1) && item.group !== group(at - 1);
    return {
      row,
      texts: this._textsOf(item),
      folded: item.size > 1 && item.lines > 0 ? this._speakersOf(item) : null,
      hidden: item.lines > 0 ? 0 : item.size,
      nodes: item.lines > 0 ? 0 : this._nodesOf(item),
      isLead
    };
  }

  /** Whether what is drawn under a number hides lines that say something else. */
  hides(number: number): boolean {
    return this._items[number - this._first]?.lines === 0;
  }

  /** The window's rows that are drawn under a number. */
  rangeOf(number: number): IRowRange | undefined {
    const item = this._items[number - this._first];
    return item && { begin: item.begin, end: endOf(item) };
  }

  /** The number under which a row of the window is drawn; `end` when it isn't held. */
  numberOf(row: number): number {
    const at = this._indexOf(row);
    const isHeld = row >= (this._items[at]?.begin ?? Infinity);
    return isHeld ? this._first + at : this.end;
  }

  /** Open what is folded, or fold what was opened. */
  toggle(number: number): void {
    this.sync();
    const at = number - this._first;
    const item = this._items[at];
    if (!item) {
      return;
    }
    if (item.size > 1) {
      for (let row = item.begin; row < endOf(item); row++) {
        this._opened.add(row);
      }
    } else {
      this._items
        .filter(other => other.group === item.group)
        .forEach(other => this._opened.delete(other.begin));
    }
    this._refold(this._groupBegin(at));
  }

  /** Numbers of items that are different since this was last asked, beside those that are new. */
  takeChanged(): Set<number> {
    const changed = this._changed;
    this._changed = new Set();
    return changed;
  }

  /** Bring the items in step with the window. */
  sync(): void {
    const kept = this._window.takeKept();
    const changed = [...this._window.takeChanged()].filter(
      row => row >= kept.begin && row < kept.end
    );
    this._opened.forEach(row => {
      if (row < kept.begin || row >= kept.end) {
        this._opened.delete(row);
      }
    });
    if (kept.begin >= kept.end || this._items.length === 0) {
      this._rebuild();
      return;
    }
    this._cutFront(kept.begin);
    this._cutEnd(kept.end);
    changed.forEach(row => this._changed.add(this.numberOf(row)));
    const earliest = Math.min(...changed);
    if (earliest < Infinity) {
      // It may say now what the rows before it say.
      this._refold(this._groupBegin(this._indexOf(earliest) - MOST_LINES));
    } else if (this._window.end > kept.end) {
      this._refold(this._groupBegin(this._items.length - MOST_LINES));
    }
    this._foldBefore();
  }

  private _rebuild(): void {
    this._first = this.end;
    this._items = this._fold(this._window.first, this._window.end);
    this._changed.clear();
  }

  private _cutFront(begin: number): void {
    let count = 0;
    while (endOf(this._items[count]) <= begin) {
      this._changed.add(this._first + count);
      count++;
    }
    this._items.splice(0, count);
    this._first += count;
    const [item] = this._items;
    if (item.begin < begin) {
      const left = this._part(item, begin, endOf(item));
      this._items.splice(0, 1, ...left);
      this._first -= left.length - 1;
      left.forEach((_, at) => this._changed.add(this._first + at));
    }
  }

  private _cutEnd(end: number): void {
    while (this._items[this._items.length - 1].begin >= end) {
      this._items.pop();
      this._changed.add(this.end);
    }
    const item = this._items[this._items.length - 1];
    if (endOf(item) > end) {
      const left = this._part(item, item.begin, end);
      this._changed.add(this.end - 1);
      this._items.splice(-1, 1, ...left);
    }
  }

  /** What is left of an item; half a block is no block. */
  private _part(item: IItem, begin: number, end: number): IItem[] {
    return item.lines > 1
      ? this._fold(begin, end)
      : [{ ...item, begin, size: end - begin }];
  }

  /** Fold again from an item to the window's end. */
  private _refold(at: number): void {
    const old = this._items.slice(at);
    const items = this._fold(old[0].begin, this._window.end);
    this._items.length = at;
    items.forEach(item => this._items.push(item));
    old.forEach((item, offset) =>
      this._compare(item, items[offset], this._first + at + offset)
    );
  }

  /** Fold what was put in front, together with the first group: the same may have been said before. */
  private _foldBefore(): void {
    const { first } = this._window;
    if (first >= this._items[0].begin) {
      return;
    }
    let count = Math.min(MOST_LINES, this._items.length);
    const { group } = this._items[count - 1];
    while (this._items[count]?.group === group) {
      count++;
    }
    const old = this._items.slice(0, count);
    const items = this._fold(first, endOf(old[count - 1]));
    this._items = items.concat(this._items.slice(count));
    this._first += count - items.length;
    // From behind: what was there keeps its numbers.
    const shift = items.length - count;
    old.forEach((item, at) =>
      this._compare(item, items[at + shift], this._first + at + shift)
    );
  }

  private _compare(old: IItem, now: IItem | undefined, number: number): void {
    if (
      old.begin !== now?.begin ||
      old.size !== now.size ||
      old.lines !== now.lines ||
      old.group !== now.group
    ) {
      this._changed.add(number);
    }
  }

  private _fold(begin: number, end: number): IItem[] {
    const items: IItem[] = [];
    for (let at = begin; at < end;) {
      const { lines, size } = this._measure(at, end);
      if (size > 1 && this._isOpened(at, at + size)) {
        for (let row = at; row < at + size; row++) {
          items.push({ begin: row, size: 1, lines: 1, group: at });
        }
      } else {
        items.push({ begin: at, size, lines, group: at });
      }
      at += size;
    }
    return items;
  }

  /** How many rows from one on are one, and how many lines are drawn of them. */
  private _measure(at: number, end: number): { lines: number; size: number } {
    if (this._foldsNodes) {
      const size = this._nodesFrom(at, end);
      if (size > 1) {
        return { lines: 0, size };
      }
    }
    if (this._folds) {
      const size = this._sameFrom(at, end);
      if (size > 1) {
        return { lines: 1, size };
      }
      const lines = this._ownFrom(at, end);
      if (lines > 1) {
        return this._blocksFrom(at, end, lines);
      }
    }
    return { lines: 1, size: 1 };
  }

  /** How many rows from one on are lines of nodes. */
  private _nodesFrom(begin: number, end: number): number {
    let at = begin;
    for (; at < Math.min(end, begin + MOST_NODE_LINES); at++) {
      const row = this._window.row(at);
      if (!row || row.mark || row.origin.rank !== null) {
        break;
      }
    }
    return at - begin;
  }

  /** How many rows from one on are the same line of different ranks. */
  private _sameFrom(begin: number, end: number): number {
    const row = this._window.row(begin);
    const streams = new Set([row?.stream]);
    let at = begin + 1;
    for (; row && at < Math.min(end, begin + MOST_FOLDED); at++) {
      const next = this._window.row(at);
      if (!next || streams.has(next.stream) || !isSame(row, next)) {
        break;
      }
      streams.add(next.stream);
    }
    return at - begin;
  }

  /** How many rows from one on are of its stream; more than a block may have: 0. */
  private _ownFrom(begin: number, end: number): number {
    const stream = this._window.row(begin)?.stream;
    let at = begin + 1;
    while (at < end && this._window.row(at)?.stream === stream) {
      if (++at - begin > MOST_LINES) {
        return 0;
      }
    }
    return at - begin;
  }

  /** The blocks of a number of lines, from a row on, that different ranks repeat. */
  private _blocksFrom(
    begin: number,
    end: number,
    lines: number
  ): { lines: number; size: number } {
    const streams = new Set([this._window.row(begin)?.stream]);
    let at = begin + lines;
    while (at + lines <= end && streams.size < MOST_FOLDED) {
      const stream = this._window.row(at)?.stream;
      if (streams.has(stream) || !this._repeats(begin, at, lines)) {
        break;
      }
      streams.add(stream);
      at += lines;
    }
    return streams.size > 1
      ? { lines, size: at - begin }
      : { lines: 1, size: 1 };
  }

  /** Whether a block says line by line what an earlier one does, and is of one stream. */
  private _repeats(begin: number, at: number, lines: number): boolean {
    const stream = this._window.row(at)?.stream;
    for (let line = 0; line < lines; line++) {
      const one = this._window.row(begin + line);
      const other = this._window.row(at + line);
      if (!one || !other || other.stream !== stream || !isSame(one, other)) {
        return false;
      }
    }
    return true;
  }

  private _isOpened(begin: number, end: number): boolean {
    for (let row = begin; this._opened.size > 0 && row < end; row++) {
      if (this._opened.has(row)) {
        return true;
      }
    }
    return false;
  }

  private _textsOf(item: IItem): string[] {
    const texts: string[] = [];
    for (let line = 0; line < item.lines; line++) {
      texts.push(this._window.row(item.begin + line)?.text ?? '');
    }
    return texts;
  }

  private _nodesOf(item: IItem): number {
    const streams = new Set<string | undefined>();
    for (let at = item.begin; at < endOf(item); at++) {
      streams.add(this._window.row(at)?.stream);
    }
    return streams.size;
  }

  /** The first row of each rank. */
  private _speakersOf(item: IItem): ILogRow[] {
    const rows: ILogRow[] = [];
    for (let at = item.begin; at < endOf(item); at += item.lines) {
      const row = this._window.row(at);
      if (row) {
        rows.push(row);
      }
    }
    return rows;
  }

  /** Where the group of an item begins. */
  private _groupBegin(at: number): number {
    let begin = Math.max(0, at);
    while (
      begin > 0 &&
      this._items[begin - 1].group === this._items[begin].group
    ) {
      begin--;
    }
    return begin;
  }

  /** The item that has a row, or the one that would be next to it. */
  private _indexOf(row: number): number {
    let [low, high] = [0, this._items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] =
        endOf(this._items[middle]) <= row ? [middle + 1, high] : [low, middle];
    }
    return low;
  }

  private readonly _window: LogWindow;
  private _items: IItem[] = [];
  private _first = 0;
  private _folds = false;
  private _foldsNodes = false;
  private _changed = new Set<number>();
  /** Rows whose group the user has opened. */
  private readonly _opened = new Set<number>();
}

function endOf(item: IItem): number {
  return item.begin + item.size;
}

/** Whether two rows are the same line, of ranks of one attempt. A line that goes on may be another one soon. */
function isSame(one: ILogRow, other: ILogRow): boolean {
  return (
    one.text === other.text &&
    !one.mark &&
    !other.mark &&
    !one.open &&
    !other.open &&
    one.origin.rank !== null &&
    other.origin.rank !== null &&
    one.origin.attempt === other.origin.attempt &&
    one.origin.index === other.origin.index
  );
}
