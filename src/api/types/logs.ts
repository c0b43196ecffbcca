/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';

/** Frames up to `seq` are taken in. */
export interface IAck {
  readonly type: 'ack';
  readonly id: number;
  readonly seq: number;
}

/** The logs of an attempt. */
export interface IAttemptStreams {
  readonly number: number;
  readonly streams: readonly IStreamInfo[];
}

/** The run has ended and all of its log was sent. */
export interface IEnd {
  readonly id: number;
  readonly type: 'end';
}

/** The subscription is over; without `id` the message was not understood. */
export interface IFailure {
  readonly type: 'error';
  readonly error: IError;
  readonly id?: number;
}

/** Lines; `after` is the cursor behind them. */
export interface IFrame {
  readonly blocks: readonly ILogBlock[];
  readonly after: string;
  readonly id: number;
  readonly seq: number;
  readonly type: 'frame';
}

/** A stretch of one stream, arranged by column. */
export interface ILogBlock {
  readonly attempt: number;
  readonly node: string;
  readonly node_rank: number;
  readonly rank: number | null;
  readonly index: number | null;
  /** Something that happened in the stream before its lines. */
  readonly mark: ILogMark | null;
  readonly lines: string | null;
  readonly times: number | readonly (number | null)[] | null;
  readonly flags: readonly (readonly [number, number])[] | null;
}

/** Blocks in the order in which they are to be shown, and the cursor behind them. */
export interface ILogFrame {
  readonly blocks: readonly ILogBlock[];
  readonly after: string;
}

/** A line that matches. */
export interface ILogHit {
  /** Its attempt, from 1. */
  readonly attempt: number;
  /** Its node's name, or `node-R` while that is unknown. */
  readonly node: string;
  /** Its node's rank. */
  readonly node_rank: number;
  /** Its global rank; null for a node's own log. */
  readonly rank: number | null;
  /** When it was first seen, or null when nobody noted it. */
  readonly time: number | null;
  /** Its text, or 16 KiB of it around the match. */
  readonly line: string;
  /** Begin and end of the (first) match in `line`, in characters. */
  readonly match: readonly [number, number];
  /** A page forward from here begins with the line; a page backward ends before it. */
  readonly cursor: string;
  /** In an array's log the index of the child; null in a run's own log. */
  readonly index: number | null;
}

/** What a search has found. */
export interface ILogHits {
  /** The hits, nearest to where the search began first. */
  readonly hits: readonly ILogHit[];
  /** Where to search on, in the same direction; null when all was searched. */
  readonly next: string | null;
  /** Bytes that were searched. */
  readonly scanned: number;
}

/** Something about a stream that its reader must see, in words. */
export interface ILogMark {
  readonly kind: 'attempt' | 'truncated' | 'replaced' | 'gap' | 'unreadable';
  readonly text: string;
}

/** Some lines, and the cursors on both sides of them. */
export interface ILogPage {
  readonly frames: readonly ILogFrame[];
  readonly before: string;
  readonly after: string;
  readonly at_start: boolean;
  readonly at_end: boolean;
}

/** Which page of a log. */
export interface IPageQuery {
  /** Only this attempt. */
  readonly attempt?: number | null;
  /** Only the node of this rank. */
  readonly node?: number | null;
  /** Only these global ranks; in a query several times, or once with commas. */
  readonly ranks?: readonly number[] | null;
  /** Whether the nodes' own logs come too; default: unless ranks are asked for. */
  readonly node_logs?: boolean | null;
  /** Only lines in which this regular expression is found. */
  readonly grep?: string | null;
  /** Whether upper and lower case are the same to `grep`. */
  readonly ignore_case?: boolean;
  /** Begin with the last so many lines; of no meaning with a cursor or in a page. */
  readonly tail?: number | null;
  /** Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Show of progress bars only what they showed last. */
  readonly collapse?: boolean;
  /** Before the cursor (or the end), or from the cursor (or the start) on. */
  readonly direction?: 'backward' | 'forward';
  /** At most so many lines. */
  readonly limit?: number;
}

/** Which stream; rank 0 when nothing is said. */
export interface IRawQuery {
  /** A rank's log. */
  readonly rank?: number | null;
  /** Without a rank: the own log of the node of this rank. */
  readonly node?: number | null;
  /** Its attempt; default: the newest one that has the stream. */
  readonly attempt?: number | null;
}

/** What to search, and from where on. */
export interface ISearchQuery {
  /** Only this attempt. */
  readonly attempt?: number | null;
  /** Only the node of this rank. */
  readonly node?: number | null;
  /** Only these global ranks; in a query several times, or once with commas. */
  readonly ranks?: readonly number[] | null;
  /** Whether the nodes' own logs come too; default: unless ranks are asked for. */
  readonly node_logs?: boolean | null;
  /** Only lines in which this regular expression is found. */
  readonly grep?: string | null;
  /** Whether upper and lower case are the same to `grep`. */
  readonly ignore_case?: boolean;
  /** Begin with the last so many lines; of no meaning with a cursor or in a page. */
  readonly tail?: number | null;
  /** Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Show of progress bars only what they showed last. */
  readonly collapse?: boolean;
  /** From the cursor (or the start) on, or before it (or the end). */
  readonly direction?: 'backward' | 'forward';
  /** At most so many hits. */
  readonly limit?: number;
}

/** One log. */
export interface IStreamInfo {
  /** Its node's rank. */
  readonly node_rank: number;
  /** Its node's name, or `node-R` while that is unknown. */
  readonly node: string;
  /** Its global rank; null for a node's own log. */
  readonly rank: number | null;
  /** Its rank on the node; null for a node's own log. */
  readonly local_rank: number | null;
  /** In an array the index of the child; null otherwise. */
  readonly index: number | null;
  /** Its length in bytes. */
  readonly size: number;
  /** When it last grew; null when nobody knows. */
  readonly last_at: string | null;
  /** Whether it is a rank's that has fallen silent while others have not. */
  readonly silent: boolean;
}

/** The logs of a run. */
export interface IStreams {
  readonly attempts: readonly IAttemptStreams[];
}

/** Follow a run's log. An id that is in use is given to this subscription from `subscribed` on. */
export interface ISubscribe {
  /** Only this attempt. */
  readonly attempt?: number | null;
  /** Only the node of this rank. */
  readonly node?: number | null;
  /** Only these global ranks; in a query several times, or once with commas. */
  readonly ranks?: readonly number[] | null;
  /** Whether the nodes' own logs come too; default: unless ranks are asked for. */
  readonly node_logs?: boolean | null;
  /** Only lines in which this regular expression is found. */
  readonly grep?: string | null;
  /** Whether upper and lower case are the same to `grep`. */
  readonly ignore_case?: boolean;
  /** Begin with the last so many lines; of no meaning with a cursor or in a page. */
  readonly tail?: number | null;
  /** Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Show of progress bars only what they showed last. */
  readonly collapse?: boolean;
  readonly type: 'subscribe';
  readonly id: number;
  readonly run_id: string;
}

/** The run exists and may be read; frames follow. */
export interface ISubscribed {
  readonly id: number;
  readonly type: 'subscribed';
}

/** No more frames for this id. */
export interface IUnsubscribe {
  readonly type: 'unsubscribe';
  readonly id: number;
}
