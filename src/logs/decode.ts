import {
  listOf,
  numberOf,
  numberOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
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

type Plain = Record<string, unknown>;

/** A frame of the socket or of a page. */
export function decodeFrame(value: unknown): ILogFrame {
  const from = recordOf(value, 'frame');
  return {
    blocks: listOf(from, 'blocks', decodeBlock),
    after: textOf(from, 'after')
  };
}

/** An answer of `runs/{id}/logs`. */
export function decodePage(value: unknown): ILogPage {
  const from = recordOf(value, 'page');
  return {
    frames: listOf(from, 'frames', decodeFrame),
    before: textOf(from, 'before'),
    after: textOf(from, 'after'),
    atStart: from.at_start === true,
    atEnd: from.at_end === true
  };
}

/** An answer of `runs/{id}/logs/search`. */
export function decodeHits(value: unknown): ILogHits {
  const from = recordOf(value, 'search result');
  return {
    hits: listOf(from, 'hits', decodeHit),
    next: textOrNull(from, 'next')
  };
}

/** An answer of `runs/{id}/streams`. */
export function decodeStreams(value: unknown): ILogAttempt[] {
  return listOf(recordOf(value, 'streams'), 'attempts', item => {
    const from = recordOf(item, 'attempt');
    return {
      number: numberOf(from, 'number'),
      streams: listOf(from, 'streams', decodeStream)
    };
  });
}

function decodeStream(value: unknown): ILogStream {
  const from = recordOf(value, 'stream');
  return {
    nodeRank: numberOf(from, 'node_rank'),
    node: textOrNull(from, 'node') ?? '',
    rank: numberOrNull(from, 'rank'),
    index: numberOrNull(from, 'index'),
    size: numberOrNull(from, 'size') ?? 0,
    lastAt: dateOrNull(from, 'last_at'),
    silent: from.silent === true
  };
}

function dateOrNull(from: Plain, name: string): Date | null {
  const text = textOrNull(from, name);
  return text === null ? null : new Date(text);
}

function decodeOrigin(from: Plain): ILogOrigin {
  return {
    attempt: numberOf(from, 'attempt'),
    node: textOrNull(from, 'node') ?? '',
    nodeRank: numberOf(from, 'node_rank'),
    rank: numberOrNull(from, 'rank'),
    index: numberOrNull(from, 'index')
  };
}

function decodeBlock(value: unknown): ILogBlock {
  const from = recordOf(value, 'block');
  return {
    ...decodeOrigin(from),
    mark: from.mark ? decodeMark(from.mark) : null,
    lines: textOrNull(from, 'lines'),
    // Columns are taken as they are: a check of each number would cost more than all the rest.
    times: (from.times ?? null) as ILogBlock['times'],
    flags: (from.flags ?? null) as ILogBlock['flags']
  };
}

function decodeMark(value: unknown): ILogMark {
  const from = recordOf(value, 'mark');
  return { kind: textOf(from, 'kind'), text: textOf(from, 'text') };
}

function decodeHit(value: unknown): ILogHit {
  const from = recordOf(value, 'hit');
  const match = Array.isArray(from.match) ? (from.match as unknown[]) : [];
  return {
    ...decodeOrigin(from),
    time: numberOrNull(from, 'time'),
    line: textOf(from, 'line'),
    match: [Number(match[0] ?? 0), Number(match[1] ?? 0)],
    cursor: textOf(from, 'cursor')
  };
}
