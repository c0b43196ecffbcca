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

/** The cell whose execution raised an exception, perhaps in a function of another cell: the outermost cell of the last traceback. */
export function executedCell(traceback: string): number | null {
  const last = traceback.split(/^.*Traceback \(most recent call last\)/m).pop();
  const line = (last ?? '').split('\n').find(text => placeIn(text) !== null);
  return line === undefined ? null : (placeIn(line)?.cell ?? null);
}

/** Make an element with a line's text a link when that names a place. */
export function linkPlace(element: HTMLElement, text: string): void {
  if (placeIn(text)) {
    element.classList.add('jp-HyperPod-LogRow-link');
    element.setAttribute('role', 'link');
    element.tabIndex = 0;
  }
}
