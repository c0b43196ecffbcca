import type { Schema } from '../api';

/**
 * Which lines of a run are requested.
 */
export interface ILogRequest {
  readonly runId: string;
  /** Only this attempt; all when it is not given. */
  readonly attempt?: number;
  /** Only the node of this rank. */
  readonly node?: number;
  /** Only these global ranks. */
  readonly ranks?: readonly number[];
  /** Whether the nodes' own logs come too. */
  readonly nodeLogs?: boolean;
  /** Only lines that match this regular expression. */
  readonly grep?: string;
  /** The expression matches letters of either case. */
  readonly ignoreCase?: boolean;
}

/** Something that happened in a stream before a line. */
export type ILogMark = Schema<'LogMark'>;

/** A stretch of one stream, arranged by column. Times are Unix seconds, flags `[line, bits]` of the lines that are not whole. */
export type ILogBlock = Schema<'LogBlock'>;

/** Blocks in the order in which they are shown, and the cursor behind them. */
export type ILogFrame = Schema<'LogFrame'> & {
  readonly blocks: readonly ILogBlock[];
};

/** A page of history, and the cursors on both sides of it. */
export type ILogPage = Schema<'LogPage'> & {
  readonly frames: readonly ILogFrame[];
};

/** A line in which something was found; a page forward from its cursor begins with it. */
export type ILogHit = Schema<'LogHit'>;

/** Some hits, and where the search goes on. */
export interface ILogHits extends Pick<Schema<'LogHits'>, 'next'> {
  readonly hits: readonly ILogHit[];
}

/** A log over time: bytes and matching lines in buckets of equal length. */
export type ILogHistogram = Schema<'Histogram'>;

/** Who wrote a line: a rank, or without one the node itself. */
export type ILogOrigin = Pick<
  ILogBlock & ILogHit,
  'attempt' | 'node' | 'node_rank' | 'rank' | 'index'
>;

/** One log of an attempt: a rank's, or a node's own. */
export type ILogStream = Schema<'StreamInfo'>;

/** The logs of one attempt. */
export type ILogAttempt = Schema<'AttemptStreams'>;

/** The piece goes on with a line of which a part was shown. */
export const CONTINUED = 1;
/** The piece does not end its line. */
export const PARTIAL = 2;
/** The piece replaces what was shown of its line. */
export const REDRAWS = 4;
