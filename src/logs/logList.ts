import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { LogFeed } from './feed';
import { IMatch, rowElement, updateRow } from './rowElement';

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

const EVENTS = ['scroll', 'wheel', 'keydown'];

/** Keys that lead to older lines. */
const UPWARD_KEYS = ['ArrowUp', 'PageUp', 'Home'];

interface IPlace {
  readonly element: HTMLElement;
  readonly top: number;
}

/**
 * The rows of a log, of which only those near the visible part are in the document.
 *
 * Two spacers stand for the rest of the window. Rows may have any height (long lines wrap), so heights are never
 * computed: whatever changes, the row that is seen at the top keeps its place.
 */
export class LogList extends Widget {
  constructor(feed: LogFeed, label: string) {
    super();
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
    feed.changed.connect(this._onChanged, this);
    feed.stateChanged.connect(this._onChanged, this);
    feed.revealed.connect(this._onRevealed, this);
  }

  /** The part of a row that a search found. */
  matchOf: (text: string) => IMatch | null = () => null;

  /** Rows in the document. */
  get drawn(): number {
    return this._rows.childElementCount;
  }

  override dispose(): void {
    if (!this.isDisposed) {
      cancelAnimationFrame(this._scheduled);
      this._feed.changed.disconnect(this._onChanged, this);
      this._feed.stateChanged.disconnect(this._onChanged, this);
      this._feed.revealed.disconnect(this._onRevealed, this);
      super.dispose();
    }
  }

  handleEvent(event: Event): void {
    if (event.type === 'scroll') {
      this._onScroll();
    } else if (leadsUp(event) && this.node.scrollTop > 0) {
      // Before the first move of a smooth scroll, which the next line would undo.
      this._feed.pause();
    }
  }

  /** Draw what is to be seen now. */
  refresh(): void {
    if (this.isAttached && this.isVisible && this.node.clientHeight > 0) {
      this._draw();
      this._pageMore();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    EVENTS.forEach(type =>
      this.node.addEventListener(type, this, { passive: true })
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

  private _onChanged(): void {
    this.refresh();
  }

  private _onRevealed(_: LogFeed, row: number): void {
    this._clear();
    this._revealed = row;
    this._drawRange(row - OVERSCAN, row + this._visibleRows() + OVERSCAN);
    const element = this._elementOf(row);
    if (element) {
      element.classList.add('jp-mod-current');
      this._scrollTo(this._topOf(element) - this.node.clientHeight / 3);
    }
    this._pageMore();
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
    const { clientHeight, scrollHeight, scrollTop } = this.node;
    const { atEnd, window } = this._feed;
    const isDown = scrollTop + clientHeight >= scrollHeight - 2;
    // Only somebody who scrolled down wants that; a short list is at its bottom always.
    const wentDown = scrollTop > this._scrolledTo;
    return isDown && wentDown && atEnd && this._end === window.end;
  }

  private _draw(): void {
    const { window } = this._feed;
    if (this._feed.following) {
      const count = this._visibleRows() + FOLLOW_OVERSCAN;
      this._drawRange(window.end - count, window.end);
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
    if (this._first - window.first < NEAR && window.backward) {
      void this._feed.loadBackward();
    } else if (window.end - this._end < NEAR && !this._feed.atEnd) {
      void this._feed.loadForward();
    }
  }

  /** Make the document hold these rows, as far as there are such, and no others. */
  private _drawRange(begin: number, end: number): void {
    const { window } = this._feed;
    const first = Math.max(begin, window.first);
    const last = Math.min(end, window.end, first + MAX_ROWS);
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
      const row = this._feed.window.row(number);
      if (row) {
        const element = rowElement(row, this.matchOf(row.text));
        if (number === this._revealed) {
          element.classList.add('jp-mod-current');
        }
        fragment.append(element);
      }
    }
    return fragment;
  }

  private _update(): void {
    for (const number of this._feed.window.takeChanged()) {
      const row = this._feed.window.row(number);
      const element = this._elementOf(number);
      if (row && element) {
        updateRow(element, row, this.matchOf(row.text));
      }
    }
  }

  private _setSpacers(): void {
    const { window } = this._feed;
    this._aboveFirst = window.first;
    const height = this._height();
    const px = (rows: number): string => `${Math.max(0, rows) * height}px`;
    this._above.style.height = px(this._first - window.first);
    this._below.style.height = px(window.end - this._end);
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
    const { window } = this._feed;
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
      return Math.min(window.end - 1, this._end + below);
    }
    let [low, high] = [0, this.drawn - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const element = this._rows.children[middle] as HTMLElement;
      [low, high] =
        this._topOf(element) <= scrollTop ? [middle, high] : [low, middle - 1];
    }
    return this._first + low;
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
    this._first = this._end = this._feed.window.first;
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
  private readonly _above = document.createElement('div');
  private readonly _rows = document.createElement('div');
  private readonly _below = document.createElement('div');
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

/** Whether the user wants to see what is further up. */
function leadsUp(event: Event): boolean {
  return event instanceof WheelEvent
    ? event.deltaY < 0
    : event instanceof KeyboardEvent && UPWARD_KEYS.includes(event.key);
}

function setAttributes(
  node: HTMLElement,
  attributes: Readonly<Record<string, string>>
): void {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
}
