import { IPiece } from './pieces';
import { ILogMark, ILogOrigin, REDRAWS } from './types';

/** A row as it is kept. */
export interface IRow {
  origin: ILogOrigin;
  stream: string;
  time: number | null;
  text: string;
  mark: ILogMark | null;
  open: boolean;
  gone: boolean;
  readonly segment: ISegment;
}

/** A piece that went into a row of an earlier segment. */
export interface IMerge {
  piece: IPiece;
  row: IRow;
  /** What the row was before. */
  text: string;
  open: boolean;
}

/** The rows of one frame, with what is needed to take them back. */
export interface ISegment {
  rows: IRow[];
  readonly merges: IMerge[];
  /** The cursor behind the segment. */
  after: string;
}

/** What a piece changes of a row. */
export function stateOf(row: IRow): { text: string; open: boolean } {
  return { text: row.text, open: row.open };
}

/** Remember how to take a piece back when its segment goes; one note for each row is enough. */
export function recordMerge(segment: ISegment, merge: IMerge): void {
  if (merge.row.segment === segment) {
    return;
  }
  const known = segment.merges.find(other => other.row === merge.row);
  if (!known) {
    segment.merges.push(merge);
  } else if (merge.piece.flags & REDRAWS) {
    known.piece = merge.piece;
  } else {
    const { flags, text } = merge.piece;
    known.piece = {
      ...known.piece,
      text: known.piece.text + text,
      flags: (known.piece.flags & REDRAWS) | flags
    };
  }
}
