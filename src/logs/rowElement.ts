import { pageLanguage } from '../components/words';
import { ansiSpans } from './ansi';
import { IShownRow } from './foldedRows';
import { IMatch, levelOf, LogLevel } from './pattern';
import { linkPlace } from './place';
import { formatRanks } from './ranks';
import { ILogOrigin } from './types';

/** Colours that ranks take in turn; the number is also in style/logs.css. */
export const RANK_COLOURS = 8;

/** Who wrote a line, as short as on the command line: `3`, `2.3` in an array's child 2, `node0` for a node's own log. */
export function originLabel(origin: ILogOrigin): string {
  const who =
    origin.rank === null ? `node${origin.node_rank}` : String(origin.rank);
  return origin.index === null ? who : `${origin.index}.${who}`;
}

/** Finds what is looked for in a text. */
export type Finder = (text: string) => readonly IMatch[];

/**
 * What is said of rows.
 */
export interface IRowWords {
  /** Names several ranks, such as `8 ranks`. */
  readonly ranks: (count: number) => string;
  /** Names several nodes, such as `8 nodes`. */
  readonly nodes: (count: number) => string;
  /** Says that each of them wrote this line, and what a click does. */
  readonly folded: (ranks: string) => string;
  /** Says how many lines of launchers are folded. */
  readonly hidden: (count: number) => string;
  /** Says what a click on them does. */
  readonly show: string;
  /** Says what a click does on the first of some that were folded. */
  readonly opened: string;
  /** The prefix of lines of logs that belong to no run. */
  readonly labelOf?: (origin: ILogOrigin) => string;
  /** Whether times are with their day, where no mark tells it. */
  readonly isDated?: boolean;
}

/** The button that opens a row in which ranks are folded, or folds them again. */
export const FOLD_CLASS = 'jp-HyperPod-LogRow-fold';

/** Characters that turn the direction of what follows. */
const TURNS = /([\u202a-\u202e\u2066-\u2069])/;

/** Longer lists of ranks are only counted. */
const MAX_LABEL = 7;

/**
 * The element of a row.
 */
export function rowElement(
  shown: IShownRow,
  find: Finder,
  words: IRowWords
): HTMLElement {
  const element = document.createElement('div');
  element.className = 'jp-HyperPod-LogRow';
  fill(element, shown, find, words);
  return element;
}

/** Put a row's new text into its element, and who says it. */
export function updateRow(
  element: HTMLElement,
  shown: IShownRow,
  find: Finder,
  words: IRowWords
): void {
  element.className = 'jp-HyperPod-LogRow';
  delete element.dataset.kind;
  delete element.dataset.level;
  fill(element, shown, find, words);
}

function fill(
  element: HTMLElement,
  shown: IShownRow,
  find: Finder,
  words: IRowWords
): void {
  const { hidden, row, texts } = shown;
  if (row.mark) {
    element.classList.add('jp-HyperPod-LogRow-mark');
    element.dataset.kind = row.mark.kind;
    const who =
      row.mark.kind === 'attempt' ? '' : `${labelOf(row.origin, words)}: `;
    element.textContent = `${who}${row.mark.text}`;
    return;
  }
  element.replaceChildren(
    part('time', row.time === null ? '' : timeText(row.time, words)),
    originElement(shown, words)
  );
  if (hidden > 0) {
    element.append(part('hidden', words.hidden(hidden)));
    return;
  }
  const lines = texts.map(text => textElement(text, find(text)));
  if (lines.length > 1) {
    const block = part('block', '');
    block.append(...lines);
    element.append(block);
  } else {
    element.append(...lines);
  }
  const level = worst(texts);
  if (level) {
    element.dataset.level = level;
  }
}

function worst(texts: readonly string[]): LogLevel | null {
  const levels = texts.map(levelOf);
  return (
    levels.find(level => level === 'error') ??
    levels.find(level => level) ??
    null
  );
}

function originElement(shown: IShownRow, words: IRowWords): HTMLElement {
  const { folded, hidden, isLead, nodes, row } = shown;
  if (hidden > 0) {
    const label = nodes > 1 ? words.nodes(nodes) : labelOf(row.origin, words);
    return foldButton(label, words.show, false);
  }
  if (folded) {
    const ranks = formatRanks(
      folded
        .map(({ origin }) => origin.rank ?? 0)
        .sort((one, other) => one - other)
    );
    const { index } = row.origin;
    const short = ranks.length > MAX_LABEL ? words.ranks(folded.length) : ranks;
    const label = index === null ? short : `${index}.${short}`;
    return foldButton(label, words.folded(ranks), false);
  }
  const label = rankLabel(row.origin, words);
  if (!isLead) {
    return label;
  }
  const button = foldButton(label.textContent ?? '', words.opened, true);
  button.dataset.colour = label.dataset.colour;
  return button;
}

function foldButton(text: string, title: string, isOpen: boolean): HTMLElement {
  const button = part('origin', text, 'button');
  button.classList.add(FOLD_CLASS);
  button.title = title;
  button.setAttribute('type', 'button');
  button.setAttribute('aria-expanded', String(isOpen));
  return button;
}

function part(name: string, text: string, tag = 'span'): HTMLElement {
  const element = document.createElement(tag);
  element.className = `jp-HyperPod-LogRow-${name}`;
  element.textContent = text;
  return element;
}

function labelOf(origin: ILogOrigin, words: IRowWords): string {
  return words.labelOf?.(origin) ?? originLabel(origin);
}

function rankLabel(origin: ILogOrigin, words: IRowWords): HTMLElement {
  const label = part('origin', labelOf(origin, words));
  const number =
    words.labelOf !== undefined
      ? String(origin.node_rank % RANK_COLOURS)
      : origin.rank === null
        ? 'node'
        : String((origin.rank + (origin.index ?? 0)) % RANK_COLOURS);
  label.dataset.colour = number;
  label.title = origin.node;
  return label;
}

function textElement(text: string, matches: readonly IMatch[]): HTMLElement {
  const element = part('text', '');
  for (const span of ansiSpans(text)) {
    const { classes, color, background } = span;
    if (classes.length === 0 && !color && !background) {
      appendText(element, span.text, span.begin, matches);
      continue;
    }
    const styled = document.createElement('span');
    styled.className = classes.join(' ');
    // These colours come from the log: no theme has them.
    styled.style.color = color ?? '';
    styled.style.backgroundColor = background ?? '';
    appendText(styled, span.text, span.begin, matches);
    element.append(styled);
  }
  linkPlace(element, text);
  return element;
}

/** Append text, the parts of it that lie in matches as such. */
function appendText(
  to: HTMLElement,
  text: string,
  offset: number,
  matches: readonly IMatch[]
): void {
  let done = 0;
  for (const match of matches) {
    const begin = Math.max(done, match.begin - offset);
    const end = Math.min(text.length, match.end - offset);
    if (end > begin) {
      const found = document.createElement('mark');
      found.className = 'jp-HyperPod-LogRow-match';
      appendPlain(to, text.slice(done, begin));
      appendPlain(found, text.slice(begin, end));
      to.append(found);
      done = end;
    }
  }
  appendPlain(to, text.slice(done));
}

/** Append text, what turns the direction of others in it only as a symbol: a line must read as it is. */
function appendPlain(to: HTMLElement, text: string): void {
  text.split(TURNS).forEach((piece, at) => {
    if (at % 2 === 0) {
      to.append(piece);
      return;
    }
    // It stays in the text, for who copies that.
    const symbol = part('turn', piece);
    symbol.dataset.code = `U+${piece.charCodeAt(0).toString(16).toUpperCase()}`;
    to.append(symbol);
  });
}

/** Take away the mark of the row that a search led to. */
export function clearCurrent(list: HTMLElement): void {
  list
    .querySelectorAll('.jp-HyperPod-LogRow.jp-mod-current')
    .forEach(row => row.classList.remove('jp-mod-current'));
}

let clockFormat: Intl.DateTimeFormat | null = null;

function timeText(seconds: number, words: IRowWords): string {
  return words.isDated ? dayAndTime(seconds) : clockTime(seconds);
}

let dayFormat: Intl.DateTimeFormat | null = null;

function dayAndTime(seconds: number): string {
  dayFormat ??= new Intl.DateTimeFormat(pageLanguage(), {
    month: 'short',
    day: '2-digit'
  });
  return `${dayFormat.format(seconds * 1000)} ${clockTime(seconds)}`;
}

/** The time of day; the day itself is in a mark and in the run's header. */
function clockTime(seconds: number): string {
  clockFormat ??= new Intl.DateTimeFormat(pageLanguage(), {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false
  });
  return clockFormat.format(seconds * 1000);
}
