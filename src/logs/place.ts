/**
 * A place in a notebook that a line of a log names.
 */
export interface ICellPlace {
  /** The code cell's number when the run was sent, from 1. */
  readonly cell: number;
  /** The line in the cell, from 1. */
  readonly line: number;
}

/** A traceback's line on one of the files that a run has for each cell. */
const FRAME = /[\\/]cell-(\d+)(?:\.compiled)?\.py", line (\d+)/;

// eslint-disable-next-line no-control-regex -- colours in a traceback begin with one
const COLOURS = /\u001b\[[\d;]*m/g;

/** The place that a line of a log names; null when it names none. */
export function placeIn(text: string): ICellPlace | null {
  if (!text.includes('cell-')) {
    return null;
  }
  const found = FRAME.exec(text.replace(COLOURS, ''));
  return found && { cell: Number(found[1]), line: Number(found[2]) };
}

/** Make a row's text a link when it names a place. */
export function linkPlace(row: HTMLElement, text: string): void {
  const place = placeIn(text);
  const target = row.lastElementChild;
  if (place && target instanceof HTMLElement) {
    target.classList.add('jp-HyperPod-LogRow-link');
    target.setAttribute('role', 'link');
    target.tabIndex = 0;
  }
}
