import {
  listOf,
  numberOf,
  numberOrNull,
  partOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf,
  unseenOf,
  Wire
} from '../api';
import type * as wire from '../api/types';
import {
  ILogAttempt,
  ILogBlock,
  ILogFrame,
  ILogHit,
  ILogHits,
  ILogMark,
  ILogOrigin,
  ILogPage,
  ILogStream
} from './types';

/** What a block and a hit have in common. */
type Origin = Pick<
  wire.ILogBlock & wire.ILogHit,
  'attempt' | 'node' | 'node_rank' | 'rank' | 'index'
>;

/** A frame of the socket or of a page. */
export function decodeFrame(value: unknown): ILogFrame {
  const from = recordOf<wire.ILogFrame>(value, 'frame');
  return {
    blocks: listOf(from, 'blocks', decodeBlock),
    after: textOf(from, 'after')
  };
}

/** An answer of `runs/{id}/logs`. */
export function decodePage(value: unknown): ILogPage {
  const from = recordOf<wire.ILogPage>(value, 'page');
  return {
    frames: listOf(from, 'frames', decodeFrame),
    before: textOf(from, 'before'),
    after: textOf(from, 'after'),
    atStart: truthOf(from, 'at_start'),
    atEnd: truthOf(from, 'at_end')
  };
}

/** An answer of `runs/{id}/logs/search`. */
export function decodeHits(value: unknown): ILogHits {
  const from = recordOf<wire.ILogHits>(value, 'search result');
  return {
    hits: listOf(from, 'hits', decodeHit),
    next: textOrNull(from, 'next')
  };
}

/** An answer of `runs/{id}/streams`. */
export function decodeStreams(value: unknown): ILogAttempt[] {
  return listOf(recordOf<wire.IStreams>(value, 'streams'), 'attempts', item => {
    const from = recordOf<wire.IAttemptStreams>(item, 'attempt');
    return {
      number: numberOf(from, 'number'),
      streams: listOf(from, 'streams', decodeStream)
    };
  });
}

function decodeStream(value: unknown): ILogStream {
  const from = recordOf<wire.IStreamInfo>(value, 'stream');
  return {
    nodeRank: numberOf(from, 'node_rank'),
    node: textOrNull(from, 'node') ?? '',
    rank: numberOrNull(from, 'rank'),
    index: numberOrNull(from, 'index'),
    size: numberOrNull(from, 'size') ?? 0,
    lastAt: dateOrNull(textOrNull(from, 'last_at')),
    silent: truthOf(from, 'silent')
  };
}

function dateOrNull(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

function decodeOrigin(from: Wire<Origin>): ILogOrigin {
  return {
    attempt: numberOf(from, 'attempt'),
    node: textOrNull(from, 'node') ?? '',
    nodeRank: numberOf(from, 'node_rank'),
    rank: numberOrNull(from, 'rank'),
    index: numberOrNull(from, 'index')
  };
}

function decodeBlock(value: unknown): ILogBlock {
  const from = recordOf<wire.ILogBlock>(value, 'block');
  return {
    ...decodeOrigin(from),
    mark: partOrNull(from, 'mark', decodeMark),
    lines: textOrNull(from, 'lines'),
    // Columns are taken as they are: a check of each number would cost more than all the rest.
    times: unseenOf(from, 'times'),
    flags: unseenOf(from, 'flags')
  };
}

function decodeMark(value: unknown): ILogMark {
  const from = recordOf<wire.ILogMark>(value, 'mark');
  return { kind: textOf(from, 'kind'), text: textOf(from, 'text') };
}

function decodeHit(value: unknown): ILogHit {
  const from = recordOf<wire.ILogHit>(value, 'hit');
  const [begin, end] = listOf(from, 'match', Number);
  return {
    ...decodeOrigin(from),
    time: numberOrNull(from, 'time'),
    line: textOf(from, 'line'),
    match: [begin ?? 0, end ?? 0],
    cursor: textOf(from, 'cursor')
  };
}
