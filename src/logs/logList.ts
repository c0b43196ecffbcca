import { Message } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { LogFeed } from './feed';
import { FoldedRows } from './foldedRows';
import { edgeOf, IPlace, lastWhere, leadsUp, setAttributes } from './listNode';
import { clearCurrent, Finder, FOLD_CLASS, IRowWords } from './rowElement';
import { rowElement, updateRow } from './rowElement';
import type { ITimeRange } from './viewModel';

/** The most rows that are in the document. */
const MAX_ROWS = 400;

/** Rows that are drawn beyond what is seen, on each side. */
const OVERSCAN = 40;

/** As much above the end while it is followed: little, as these are drawn again and again. */
const FOLLOW_OVERSCAN = 10;

/** Rows that are left to an edge of the window when more are paged in. */
const NEAR = 120;

/** Before any row was measured. */
const GUESSED_HEIGHT = 18;

const EVENTS = ['scroll', 'wheel', 'keydown', 'click'];

/**
 * The rows of a log, of which only those near the visible part are in the document.
 *
 * Two spacers stand for the rest of the window. Rows may have any height (long lines wrap), so heights are never
 * computed: whatever changes, the row that is seen at the top keeps its place.
 */
export class LogList extends Widget {
  constructor(feed: LogFeed, label: string, words: IRowWords) {
    super();
    this._words = words;
    this._lines = new FoldedRows(feed.window);
    this.addClass('jp-HyperPod-LogList');
    this._feed = feed;
    // Announcing each line would drown everything else; whoever wants to read goes into it.
    setAttributes(this.node, {
      role: 'log',
      'aria-live': 'off',
      'aria-label': label,
      tabindex: '0'
    });
    this._rows.className = 'jp-HyperPod-LogList-rows';
    this.node.append(this._above, this._rows, this._below);
    feed.changed.connect(this.refresh, this);
    feed.stateChanged.connect(this.refresh, this);
    feed.revealed.connect(this._onRevealed, this);
  }

  /** The log's last line came into view, or went out of it. */
  get endSeen(): ISignal<this, boolean> {
    return this._endSeen;
  }

  /** The times of the first and the last line in view changed. */
  get viewed(): ISignal<this, ITimeRange | null> {
    return this._viewed;
  }

  /** Finds what is looked for in a line. */
  get find(): Finder {
    return this._find;
  }

  set find(value: Finder) {
    if (value !== this._find) {
      this._find = value;
      for (let number = this._first; number < this._end; number++) {
        this._updateRow(number);
      }
    }
  }

  /**
   * Draw several lines as one row, or not.
   *
   * @param ranks - those that ranks repeat
   * @param nodes - those of nodes
   */
  fold(ranks: boolean, nodes: boolean): void {
    const lines = this._lines;
    if (ranks === lines.folds && nodes === lines.foldsNodes) {
      return;
    }
    const top = this._lines.rangeOf(this._topRow())?.begin;
    lines.folds = ranks;
    lines.foldsNodes = nodes;
    if (this._isSeen() && !this._feed.following && top !== undefined) {
      this._showAt(this._lines.numberOf(top), 0);
    }
    this.refresh();
  }

  /** Mark no row any more that was looked for. */
  unmark(): void {
    this._revealed = -1;
    clearCurrent(this.node);
  }

  /** Rows in the document. */
  get drawn(): number {
    return this._rows.childElementCount;
  }

  override dispose(): void {
    if (!this.isDisposed) {
      cancelAnimationFrame(this._scheduled);
      this._feed.changed.disconnect(this.refresh, this);
      this._feed.stateChanged.disconnect(this.refresh, this);
      this._feed.revealed.disconnect(this._onRevealed, this);
      super.dispose();
    }
  }

  handleEvent(event: Event): void {
    if (event.type === 'scroll') {
      this._onScroll();
    } else if (event.type === 'click') {
      this._onClick(event);
    } else if (edgeOf(event)) {
      // The browser knows only the part of the log that is here.
      event.preventDefault();
      void (edgeOf(event) === 'start' ? this._toStart() : this._feed.follow());
    } else if (leadsUp(event) && this.node.scrollTop > 0) {
      // Before the first move of a smooth scroll, which the next line would undo.
      this._feed.pause();
    }
  }

  /** Draw what is to be seen now. */
  refresh(): void {
    if (this._isSeen()) {
      this._lines.sync();
      this._draw();
      this._pageMore();
      this._tellEnd();
      this._tellViewed();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    EVENTS.forEach(type =>
      this.node.addEventListener(type, this, { passive: type !== 'keydown' })
    );
    this.refresh();
  }

  protected override onBeforeDetach(msg: Message): void {
    EVENTS.forEach(type => this.node.removeEventListener(type, this));
    super.onBeforeDetach(msg);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.refresh();
  }

  protected override onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    this.refresh();
  }

  private _onRevealed(_: LogFeed, row: number): void {
    this._lines.sync();
    if (this._lines.hides(this._lines.numberOf(row))) {
      this._lines.toggle(this._lines.numberOf(row));
    }
    this._clear();
    this._revealed = row;
    this._showAt(this._lines.numberOf(row), this.node.clientHeight / 3);
    this._pageMore();
  }

  private async _toStart(): Promise<void> {
    if ((await this._feed.toStart()) && this._isSeen()) {
      this._lines.sync();
      this._showAt(this._lines.first, 0);
      this._pageMore();
    }
  }

  /** Fold what is open, or open what is folded. */
  private _onClick(event: Event): void {
    const { target } = event;
    const button =
      target instanceof Element ? target.closest(`.${FOLD_CLASS}`) : null;
    const row = button?.parentElement;
    if (!row) {
      return;
    }
    const number = this._first + [...this._rows.children].indexOf(row);
    const lead = this._lines.rangeOf(number)?.begin ?? 0;
    // Who looks closer must not have it taken away by new lines.
    this._feed.pause();
    this._lines.toggle(number);
    this.refresh();
    this._elementOf(this._lines.numberOf(lead))
      ?.querySelector<HTMLElement>(`.${FOLD_CLASS}`)
      ?.focus({ preventScroll: true });
  }

  /** Draw a row and what is around it, so far below the top. */
  private _showAt(number: number, below: number): void {
    this._drawRange(number - OVERSCAN, number + this._visibleRows() + OVERSCAN);
    const element = this._elementOf(number);
    if (element) {
      this._scrollTo(this._topOf(element) - below);
    }
  }

  private _isSeen(): boolean {
    return this.isAttached && this.isVisible && this.node.clientHeight > 0;
  }

  private _onScroll(): void {
    const { node } = this;
    const wentUp = node.scrollTop < this._scrolledTo - 2;
    if (this._feed.following && wentUp && this._size() === this._scrolledSize) {
      this._feed.pause();
    } else if (!this._feed.following && this._isAtBottom()) {
      void this._feed.follow();
    }
    cancelAnimationFrame(this._scheduled);
    this._scheduled = requestAnimationFrame(() => this.refresh());
  }

  private _isAtBottom(): boolean {
    // Only a user who scrolled down wants that; a short list is always at its bottom.
    const wentDown = this.node.scrollTop > this._scrolledTo;
    return wentDown && this._isEndSeen();
  }

  private _isEndSeen(): boolean {
    const { clientHeight, scrollHeight, scrollTop } = this.node;
    const isDown = scrollTop + clientHeight >= scrollHeight - 2;
    return isDown && this._feed.atEnd && this._end === this._lines.end;
  }

  private _tellEnd(): void {
    const isSeen = this._isEndSeen();
    if (isSeen !== this._wasEndSeen) {
      this._wasEndSeen = isSeen;
      this._endSeen.emit(isSeen);
    }
  }

  private _draw(): void {
    const { end } = this._lines;
    if (this._feed.following) {
      const count = this._visibleRows() + FOLLOW_OVERSCAN;
      this._drawRange(end - count, end);
      this._scrollTo(this.node.scrollHeight);
      return;
    }
    const top = this._topRow();
    const anchor = this._placeOf(top);
    const begin = top - OVERSCAN;
    this._drawRange(begin, top + this._visibleRows() + OVERSCAN);
    if (anchor?.element.isConnected) {
      const moved = this._topOf(anchor.element) - anchor.top;
      if (moved !== 0) {
        this._scrollTo(this.node.scrollTop + moved);
      }
    } else {
      const element = this._elementOf(Math.max(top, this._first));
      this._scrollTo(element ? this._topOf(element) : 0);
    }
    this._scrolledTo = this.node.scrollTop;
  }

  private _pageMore(): void {
    const { following, window } = this._feed;
    if (following) {
      return;
    }
    const { end, first } = this._lines;
    // Where many lines are one row, there are few rows.
    const near = Math.min(NEAR, Math.max(1, (end - first) >> 3));
    if (this._first - first < near && window.backward) {
      void this._feed.loadBackward();
    } else if (end - this._end < near && !this._feed.atEnd) {
      void this._feed.loadForward();
    }
  }

  /** Make the document hold these rows, as far as there are such, and no others. */
  private _drawRange(begin: number, end: number): void {
    const first = Math.max(begin, this._lines.first);
    const last = Math.min(end, this._lines.end, first + MAX_ROWS);
    if (first >= this._end || last <= this._first) {
      this._clear();
      this._first = this._end = first;
    }
    this._update();
    while (this._first < first) {
      this._rows.firstElementChild?.remove();
      this._first++;
    }
    while (this._end > last) {
      this._rows.lastElementChild?.remove();
      this._end--;
    }
    this._rows.prepend(this._make(first, this._first));
    this._first = first;
    this._rows.append(this._make(this._end, last));
    this._end = Math.max(last, first);
    this._setSpacers();
  }

  private _make(begin: number, end: number): DocumentFragment {
    const fragment = document.createDocumentFragment();
    for (let number = begin; number < end; number++) {
      const shown = this._lines.row(number);
      if (shown) {
        const element = rowElement(shown, this._find, this._words);
        this._markCurrent(element, number);
        fragment.append(element);
      }
    }
    return fragment;
  }

  private _markCurrent(element: HTMLElement, number: number): void {
    const range = this._lines.rangeOf(number);
    const row = this._revealed;
    const isCurrent = range && row >= range.begin && row < range.end;
    element.classList.toggle('jp-mod-current', isCurrent ?? false);
  }

  private _update(): void {
    this._lines.takeChanged().forEach(number => this._updateRow(number));
  }

  private _updateRow(number: number): void {
    const shown = this._lines.row(number);
    const element = this._elementOf(number);
    if (shown && element) {
      updateRow(element, shown, this._find, this._words);
      this._markCurrent(element, number);
    }
  }

  private _setSpacers(): void {
    const { end, first } = this._lines;
    this._aboveFirst = first;
    const height = this._height();
    const px = (rows: number): string => `${Math.max(0, rows) * height}px`;
    this._above.style.height = px(this._first - first);
    this._below.style.height = px(end - this._end);
  }

  /** A row's mean height. */
  private _height(): number {
    const count = this.drawn;
    if (count > 0 && this._rows.offsetHeight > 0) {
      this._lastHeight = this._rows.offsetHeight / count;
    }
    return this._lastHeight;
  }

  private _visibleRows(): number {
    const height = Math.max(this._lastHeight, 8);
    return Math.min(
      MAX_ROWS - 2 * OVERSCAN,
      Math.ceil(this.node.clientHeight / height)
    );
  }

  /** The row that is seen first. */
  private _topRow(): number {
    const { scrollTop } = this.node;
    const height = this._lastHeight;
    const rowsTop = this._rows.offsetTop;
    const rowsEnd = rowsTop + this._rows.offsetHeight;
    if (scrollTop < rowsTop) {
      // What was paged in since stands above nothing yet.
      return Math.min(
        this._first,
        this._aboveFirst + Math.floor(scrollTop / height)
      );
    }
    if (scrollTop >= rowsEnd) {
      const below = Math.floor((scrollTop - rowsEnd) / height);
      return Math.min(this._lines.end - 1, this._end + below);
    }
    const isAbove = (at: number): boolean =>
      this._topOf(this._rows.children[at] as HTMLElement) <= scrollTop;
    return this._first + lastWhere(this.drawn, isAbove);
  }

  private _placeOf(row: number): IPlace | null {
    const element = this._elementOf(row);
    return element ? { element, top: this._topOf(element) } : null;
  }

  /** Where a row begins, in all that can be scrolled. */
  private _topOf(element: HTMLElement): number {
    return this._rows.offsetTop + element.offsetTop;
  }

  private _elementOf(row: number): HTMLElement | undefined {
    return this._rows.children[row - this._first] as HTMLElement | undefined;
  }

  private _clear(): void {
    this._rows.replaceChildren();
    this._first = this._end = this._lines.first;
  }

  private _scrollTo(top: number): void {
    this.node.scrollTop = top;
    this._scrolledTo = this.node.scrollTop;
    this._scrolledSize = this._size();
  }

  /** Where this is another than before, rows moved by themselves: a theme came with other fonts. */
  private _size(): string {
    return `${this.node.clientHeight} ${this.node.scrollHeight}`;
  }

  private readonly _feed: LogFeed;
  private readonly _lines: FoldedRows;
  private readonly _words: IRowWords;
  private readonly _above = document.createElement('div');
  private readonly _rows = document.createElement('div');
  private readonly _below = document.createElement('div');
  /** Tell the times of what is in view, where the rows there have one. */
  private _tellViewed(): void {
    const top = this._topRow();
    const begin = this._lines.row(top)?.row.time ?? null;
    const last = Math.min(top + this._visibleRows(), this._lines.end) - 1;
    const end = this._lines.row(last)?.row.time ?? begin;
    const key = `${begin} ${end}`;
    if (key !== this._viewedKey) {
      this._viewedKey = key;
      this._viewed.emit(begin === null || end === null ? null : { begin, end });
    }
  }

  private readonly _viewed = new Signal<this, ITimeRange | null>(this);
  private _viewedKey = '';
  private readonly _endSeen = new Signal<this, boolean>(this);
  private _find: Finder = () => [];
  private _wasEndSeen = true;
  private _first = 0;
  private _end = 0;
  /** The row at which the upper spacer begins. */
  private _aboveFirst = 0;
  private _lastHeight = GUESSED_HEIGHT;
  private _revealed = -1;
  private _scheduled = 0;
  private _scrolledTo = 0;
  private _scrolledSize = '';
}
