import { IPiece, piecesOf } from './pieces';
import { IRow, ISegment, recordMerge, stateOf } from './segment';
import {
  CONTINUED,
  ILogFrame,
  ILogMark,
  ILogOrigin,
  ILogPage,
  PARTIAL,
  REDRAWS
} from './types';

/**
 * A line as it is shown, or a mark between lines.
 */
export interface ILogRow {
  readonly origin: ILogOrigin;
  readonly stream: string;
  readonly time: number | null;
  readonly text: string;
  readonly mark: ILogMark | null;
  /** The line goes on, or may do so. */
  readonly open: boolean;
}

/** Where to page backward from: `skip` rows before the cursor are in the window already. */
export interface IBackwardPlace {
  readonly cursor: string;
  readonly skip: number;
}

/** Rows from a number to before another. */
export interface IRowRange {
  readonly begin: number;
  readonly end: number;
}

/** Default number of rows in a window. */
export const DEFAULT_CAPACITY = 4000;

/** Characters that are held at most, about: rows can be very long. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** A bar whose line lies further back than this goes on at the end, where it is seen. */
const REDRAW_REACH = 200;

/** A line that is longer goes on in another row. */
const MAX_TEXT = 64 * 1024;

/**
 * The part of a log that the page holds: a bounded run of rows with a cursor on each side.
 *
 * Rows have numbers that stay with them (`first` to `end`), so that a view can keep its place while rows come and go on
 * both sides. It knows neither server nor screen.
 */
export class LogWindow {
  constructor(capacity = DEFAULT_CAPACITY) {
    this.capacity = capacity;
  }

  /** Characters in the rows. */
  get characters(): number {
    return this._characters;
  }

  /** About how many rows are held at most. */
  capacity: number;

  /** Nothing lies before the window. */
  atStart = false;

  /** The number of the first row. */
  get first(): number {
    return this._first;
  }

  /** The number behind the last row. */
  get end(): number {
    return this._first + this._rows.length;
  }

  /** Rows that are held. */
  get length(): number {
    return this._rows.length;
  }

  /** The cursor behind the last row; undefined before anything came. */
  get after(): string | undefined {
    return this._segments[this._segments.length - 1]?.after ?? this._before;
  }

  /** Where to page backward from; null when nothing lies there. */
  get backward(): IBackwardPlace | null {
    if (this.atStart || this._before === undefined) {
      return null;
    }
    return { cursor: this._before, skip: this._trimmed };
  }

  /** The row of a number; undefined when it isn't held. */
  row(number: number): ILogRow | undefined {
    return this._rows[number - this._first];
  }

  /**
   * Numbers of rows whose text changed since this was last asked, beside those that are new.
   */
  takeChanged(): Set<number> {
    const changed = this._changed;
    this._changed = new Set();
    if (changed.size === 0) {
      return new Set();
    }
    const numbers = new Set<number>();
    // Rows that change are near the end as a rule; all of the window is the worst case.
    for (let at = this._rows.length - 1; at >= 0 && changed.size > 0; at--) {
      if (changed.delete(this._rows[at])) {
        numbers.add(this._first + at);
      }
    }
    return numbers;
  }

  /**
   * The numbers (`begin` to before `end`) of those rows that stand where they stood when this was last asked.
   */
  takeKept(): IRowRange {
    const kept = this._kept;
    this._kept = { begin: this.first, end: this.end };
    return kept;
  }

  /** Hold nothing. */
  clear(): void {
    this.reset({
      frames: [],
      before: '',
      after: '',
      at_start: false,
      at_end: false
    });
    this._before = undefined;
  }

  /** Start again with a page. */
  reset(page: ILogPage): void {
    this._first = this.end;
    this._rows.forEach(row => (row.gone = true));
    this._rows = [];
    this._kept = { begin: this._first, end: this._first };
    this._segments = [];
    this._open.clear();
    this._changed.clear();
    this._before = page.before;
    this._trimmed = 0;
    this._characters = 0;
    this.atStart = page.at_start;
    page.frames.forEach(frame => this._add(frame));
  }

  /**
   * Add a frame at the end; rows in front go when there are too many.
   */
  append(frame: ILogFrame): void {
    this._add(frame);
    this._evictFront();
  }

  /** Add a page at the end. */
  appendPage(page: ILogPage): void {
    page.frames.forEach(frame => this.append(frame));
  }

  /**
   * Add pages in front, the first one being the earliest; rows at the end go when there are too many.
   *
   * @param pages - what lies before `backward.cursor`, without a gap
   * @returns whether rows at the end went, which can be paged in again from `after`
   */
  prepend(pages: readonly ILogPage[]): boolean {
    if (pages.length === 0) {
      return false;
    }
    this._dropTrimmed();
    const part = new LogWindow(Infinity);
    pages.forEach(page => page.frames.forEach(frame => part._add(frame)));
    this._rows = part._rows.concat(this._rows);
    this._segments = part._segments.concat(this._segments);
    this._first -= part._rows.length;
    this._characters += part._characters;
    this._before = pages[0].before;
    this.atStart = pages[0].at_start;
    this._mergeAgain(part);
    return this._evictEnd();
  }

  private _add(frame: ILogFrame): void {
    const segment: ISegment = { rows: [], merges: [], after: frame.after };
    for (const piece of piecesOf(frame)) {
      this._take(piece, segment);
    }
    const last = this._segments[this._segments.length - 1];
    if (segment.rows.length > 0 || !last) {
      this._segments.push(segment);
      return;
    }
    // A bar that is drawn for hours makes no rows: its segments become one.
    segment.merges.forEach(merge => recordMerge(last, merge));
    if (last.after === this._before) {
      this._before = frame.after;
    }
    last.after = frame.after;
  }

  private _take(piece: IPiece, segment: ISegment): void {
    if (!piece.mark) {
      const open = this._open.get(piece.stream);
      if (open && this._goesOn(piece, open)) {
        recordMerge(segment, { piece, row: open, ...stateOf(open) });
        this._merge(piece, open);
        return;
      }
    }
    const row: IRow = {
      origin: piece.origin,
      stream: piece.stream,
      time: piece.time,
      text: piece.text,
      mark: piece.mark,
      open: (piece.flags & PARTIAL) !== 0,
      gone: false,
      segment
    };
    this._rows.push(row);
    this._characters += row.text.length;
    segment.rows.push(row);
    this._setOpen(row);
  }

  private _goesOn(piece: IPiece, open: IRow): boolean {
    if (!(piece.flags & CONTINUED) || open.gone) {
      return false;
    }
    if (!(piece.flags & REDRAWS)) {
      return open.text.length + piece.text.length <= MAX_TEXT;
    }
    return this._rows.lastIndexOf(open) >= this._rows.length - REDRAW_REACH;
  }

  private _merge(piece: IPiece, row: IRow): void {
    const before = row.text.length;
    row.text = piece.flags & REDRAWS ? piece.text : row.text + piece.text;
    this._characters += row.text.length - before;
    row.open = (piece.flags & PARTIAL) !== 0;
    this._setOpen(row);
    this._changed.add(row);
  }

  private _setOpen(row: IRow): void {
    if (row.open) {
      this._open.set(row.stream, row);
    } else if (!row.mark) {
      this._open.delete(row.stream);
    }
  }

  private _evictFront(): void {
    while (this._characters > MAX_CHARACTERS && this._segments.length > 1) {
      this._dropFront(this._segments[0], this._segments[0].rows.length);
    }
    while (this._rows.length > this.capacity && this._segments.length > 0) {
      const [segment] = this._segments;
      const excess = this._rows.length - this.capacity;
      const size = segment.rows.length;
      if (size > excess && size <= this.capacity / 4) {
        // Only big ones are cut: a small one more than the capacity is kept.
        break;
      }
      const count = Math.min(segment.rows.length, excess);
      this._dropFront(segment, count);
    }
  }

  private _dropFront(segment: ISegment, count: number): void {
    this._rows.splice(0, count).forEach(row => this._forget(row));
    this._first += count;
    this._keep(this._first, this._kept.end);
    segment.rows = segment.rows.slice(count);
    this.atStart = this.atStart && count === 0;
    this._before = segment.after;
    this._trimmed = segment.rows.length;
    if (segment.rows.length === 0) {
      this._segments.shift();
    }
  }

  /** No other rows than these are where they were. */
  private _keep(begin: number, end: number): void {
    this._kept = {
      begin: Math.max(begin, this._kept.begin),
      end: Math.min(end, this._kept.end)
    };
  }

  private _forget(row: IRow): void {
    row.gone = true;
    this._characters -= row.text.length;
    this._changed.delete(row);
    if (this._open.get(row.stream) === row) {
      this._open.delete(row.stream);
    }
  }

  /** Give up what is left of a segment that was cut: it comes again, whole, with the page before it. */
  private _dropTrimmed(): void {
    if (this._trimmed > 0) {
      this._dropFront(this._segments[0], this._trimmed);
    }
  }

  private _evictEnd(): boolean {
    let evicted = false;
    while (
      (this._rows.length > this.capacity ||
        this._characters > MAX_CHARACTERS) &&
      this._segments.length > 1
    ) {
      const last = this._segments[this._segments.length - 1];
      const left = this._rows.length - last.rows.length;
      if (left < this.capacity / 2 && this._characters <= MAX_CHARACTERS) {
        break;
      }
      this._dropEnd(last);
      evicted = true;
    }
    return evicted;
  }

  private _dropEnd(last: ISegment): void {
    this._segments.pop();
    if (last.rows.length > 0) {
      this._rows.splice(-last.rows.length).forEach(row => this._forget(row));
      this._keep(this._kept.begin, this.end);
    }
    for (const merge of last.merges.reverse()) {
      if (!merge.row.gone) {
        this._characters += merge.text.length - merge.row.text.length;
      }
      merge.row.text = merge.text;
      merge.row.open = merge.open;
      if (!merge.row.gone) {
        this._setOpen(merge.row);
        this._changed.add(merge.row);
      }
    }
  }

  /** Lines that are open at the end of a part put in front go on with pieces of later segments. */
  private _mergeAgain(part: LogWindow): void {
    const open = new Map(part._open);
    for (const segment of this._segments.slice(part._segments.length)) {
      if (open.size === 0) {
        return;
      }
      for (const merge of segment.merges) {
        const row = open.get(merge.piece.stream);
        if (row && merge.row.gone) {
          Object.assign(merge, { row, ...stateOf(row) });
          this._merge(merge.piece, row);
        }
      }
      segment.rows.forEach(row => open.delete(row.stream));
    }
    open.forEach((row, stream) => {
      if (row.open && !this._open.has(stream)) {
        this._open.set(stream, row);
      }
    });
  }

  private _rows: IRow[] = [];
  private _segments: ISegment[] = [];
  private readonly _open = new Map<string, IRow>();
  private _changed = new Set<IRow>();
  private _kept: IRowRange = { begin: 0, end: 0 };
  private _first = 0;
  private _characters = 0;
  private _before: string | undefined;
  /** Rows that are left of the first segment when it was cut: `_before` is then the cursor behind it. */
  private _trimmed = 0;
}
