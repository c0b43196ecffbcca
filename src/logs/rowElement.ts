import { ansiSpans } from './ansi';
import { linkPlace } from './place';
import { ILogOrigin } from './types';
import { ILogRow } from './window';

/** Colours that ranks take in turn; the number is also in style/logs.css. */
const RANK_COLOURS = 8;

/** Who wrote a line, as short as on the command line: `3`, `2.3` in an array's child 2, `node0` for a node's own log. */
export function originLabel(origin: ILogOrigin): string {
  const who =
    origin.rank === null ? `node${origin.nodeRank}` : String(origin.rank);
  return origin.index === null ? who : `${origin.index}.${who}`;
}

/**
 * The part of a row's text that is found by a search.
 */
export interface IMatch {
  readonly begin: number;
  readonly end: number;
}

/**
 * The element of a row.
 */
export function rowElement(row: ILogRow, match: IMatch | null): HTMLElement {
  const element = document.createElement('div');
  element.className = 'jp-HyperPod-LogRow';
  if (row.mark) {
    element.classList.add('jp-HyperPod-LogRow-mark');
    element.dataset.kind = row.mark.kind;
    const who =
      row.mark.kind === 'attempt' ? '' : `${originLabel(row.origin)}: `;
    element.textContent = `${who}${row.mark.text}`;
    return element;
  }
  element.append(
    part('time', row.time === null ? '' : clockTime(row.time)),
    rankLabel(row.origin),
    textElement(row.text, match)
  );
  linkPlace(element, row.text);
  return element;
}

/** Put a row's new text into its element. */
export function updateRow(
  element: HTMLElement,
  row: ILogRow,
  match: IMatch | null
): void {
  element.lastElementChild?.replaceWith(textElement(row.text, match));
  linkPlace(element, row.text);
}

function part(name: string, text: string): HTMLElement {
  const element = document.createElement('span');
  element.className = `jp-HyperPod-LogRow-${name}`;
  element.textContent = text;
  return element;
}

function rankLabel(origin: ILogOrigin): HTMLElement {
  const label = part('origin', originLabel(origin));
  const number =
    origin.rank === null
      ? 'node'
      : String((origin.rank + (origin.index ?? 0)) % RANK_COLOURS);
  label.dataset.colour = number;
  label.title = origin.node;
  return label;
}

function textElement(text: string, match: IMatch | null): HTMLElement {
  const element = part('text', '');
  for (const span of ansiSpans(text)) {
    const { classes, color, background } = span;
    if (classes.length === 0 && !color && !background) {
      appendText(element, span.text, span.begin, match);
      continue;
    }
    const styled = document.createElement('span');
    styled.className = classes.join(' ');
    // These come from the log: no theme has them.
    styled.style.color = color ?? '';
    styled.style.backgroundColor = background ?? '';
    appendText(styled, span.text, span.begin, match);
    element.append(styled);
  }
  return element;
}

/** Append text, the part of it that lies in the match as such. */
function appendText(
  to: HTMLElement,
  text: string,
  offset: number,
  match: IMatch | null
): void {
  const begin = Math.max(0, (match?.begin ?? 0) - offset);
  const end = Math.min(text.length, (match?.end ?? 0) - offset);
  if (end <= begin) {
    to.append(text);
    return;
  }
  const found = document.createElement('mark');
  found.className = 'jp-HyperPod-LogRow-match';
  found.textContent = text.slice(begin, end);
  to.append(text.slice(0, begin), found, text.slice(end));
}

let clockFormat: Intl.DateTimeFormat | null = null;

/** The time of day; the day itself is in a mark and in the run's header. */
function clockTime(seconds: number): string {
  clockFormat ??= new Intl.DateTimeFormat(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false
  });
  return clockFormat.format(seconds * 1000);
}
