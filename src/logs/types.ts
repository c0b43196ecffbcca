/**
 * Words of the log protocol (docs/rest-api.md) as this side uses them.
 */

/**
 * Which lines of a run somebody wants.
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
}

/**
 * Something that happened in a stream before a line.
 */
export interface ILogMark {
  readonly kind: string;
  readonly text: string;
}

/**
 * Who wrote a line.
 */
export interface ILogOrigin {
  readonly attempt: number;
  readonly node: string;
  readonly nodeRank: number;
  /** The global rank; null for the node's own log. */
  readonly rank: number | null;
  /** The child's index in an array's log. */
  readonly index: number | null;
  /** What stands before its lines, where it is no log of a run. */
  readonly label?: string;
}

/** The piece goes on with a line of which a part was shown. */
export const CONTINUED = 1;
/** The piece does not end its line. */
export const PARTIAL = 2;
/** The piece replaces what was shown of its line. */
export const REDRAWS = 4;

/**
 * A stretch of one stream, arranged by column.
 */
export interface ILogBlock extends ILogOrigin {
  readonly mark: ILogMark | null;
  /** The lines, joined with newlines; null when there is none. */
  readonly lines: string | null;
  /** Unix seconds: one for all lines, one each, or unknown. */
  readonly times: number | readonly (number | null)[] | null;
  /** `[line, bits]` of the lines that are not whole. */
  readonly flags: readonly (readonly [number, number])[] | null;
}

/**
 * Blocks in the order in which they are shown, and the cursor behind them.
 */
export interface ILogFrame {
  readonly blocks: readonly ILogBlock[];
  readonly after: string;
}

/**
 * A page of history, and the cursors on both sides of it.
 */
export interface ILogPage {
  readonly frames: readonly ILogFrame[];
  readonly before: string;
  readonly after: string;
  readonly atStart: boolean;
  readonly atEnd: boolean;
}

/**
 * A line in which something was found.
 */
export interface ILogHit extends ILogOrigin {
  readonly time: number | null;
  readonly line: string;
  /** Where in the line. */
  readonly match: readonly [number, number];
  /** A page forward from here begins with the line. */
  readonly cursor: string;
}

/**
 * Some hits, and where the search goes on.
 */
export interface ILogHits {
  readonly hits: readonly ILogHit[];
  readonly next: string | null;
}

/**
 * One log of an attempt: a rank's, or a node's own.
 */
export interface ILogStream {
  readonly nodeRank: number;
  readonly node: string;
  readonly rank: number | null;
  readonly index: number | null;
  readonly size: number;
  /** When it last grew; null when nobody knows. */
  readonly lastAt: Date | null;
  /** It has said nothing for a while although others have. */
  readonly silent: boolean;
}

/**
 * The logs of one attempt.
 */
export interface ILogAttempt {
  readonly number: number;
  readonly streams: readonly ILogStream[];
}
