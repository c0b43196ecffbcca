import { ILogBlock, ILogFrame, ILogMark, ILogOrigin } from './types';

/**
 * A piece of a line, or a mark, as it came.
 */
export interface IPiece {
  readonly origin: ILogOrigin;
  /** Names the stream. */
  readonly stream: string;
  readonly time: number | null;
  readonly text: string;
  readonly mark: ILogMark | null;
  readonly flags: number;
}

/**
 * The pieces of a frame, in the order in which they are shown.
 */
export function piecesOf(frame: ILogFrame): IPiece[] {
  const pieces: IPiece[] = [];
  for (const block of frame.blocks) {
    addPieces(block, pieces);
  }
  return pieces;
}

/** Names the stream that a block belongs to. */
export function streamOf(origin: ILogOrigin): string {
  const { attempt, index, node_rank: nodeRank, rank } = origin;
  return `${attempt}/${index ?? ''}/${nodeRank}/${rank ?? ''}`;
}

function addPieces(block: ILogBlock, pieces: IPiece[]): void {
  const origin: ILogOrigin = {
    attempt: block.attempt,
    node: block.node,
    node_rank: block.node_rank,
    rank: block.rank,
    index: block.index
  };
  const stream = streamOf(origin);
  const { mark, times } = block;
  const timeAt =
    typeof times === 'number' || times === null
      ? () => times
      : (at: number) => times[at] ?? null;
  if (mark) {
    const time = block.lines === null ? null : timeAt(0);
    pieces.push({ origin, stream, time, text: mark.text, mark, flags: 0 });
  }
  if (block.lines === null) {
    return;
  }
  const flags = new Map(block.flags ?? []);
  block.lines.split('\n').forEach((text, at) => {
    pieces.push({
      origin,
      stream,
      time: timeAt(at),
      text,
      mark: null,
      flags: flags.get(at) ?? 0
    });
  });
}
