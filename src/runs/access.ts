import {
  listOf,
  numberOf,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import type * as wire from '../api/types';

/** How to open a shell on one of a run's nodes. */
export interface IShell {
  readonly nodeRank: number;
  /** Null while it has no name. */
  readonly node: string | null;
  /** To be copied into a terminal. */
  readonly command: string;
}

/**
 * What of a run's nodes can be reached now.
 */
export interface IRunAccess {
  /** Whether their ports can. */
  readonly hasPorts: boolean;
  /** Why they can't, or why shells are not known. */
  readonly reason: string | null;
  /** By the nodes' ranks. */
  readonly shells: readonly IShell[];
}

/** TensorBoard's. */
export const USUAL_PORT = 6006;

const MOST_PORT = 65_535;

/** What can be reached, from an answer. */
export function decodeAccess(value: unknown): IRunAccess {
  const from = recordOf<wire.IRunAccess>(value, 'access');
  return {
    hasPorts: truthOf(from, 'ports'),
    reason: textOrNull(from, 'reason'),
    shells: listOf(from, 'shells', decodeShell)
  };
}

function decodeShell(value: unknown): IShell {
  const from = recordOf<wire.IShell>(value, 'shell');
  return {
    nodeRank: numberOf(from, 'node_rank'),
    node: textOrNull(from, 'node'),
    command: textOf(from, 'command')
  };
}

/** A port as it was typed; null for what is none. */
export function portOf(text: string): number | null {
  const port = /^\s*\d{1,5}\s*$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= MOST_PORT ? port : null;
}

/** The part of a port's address behind the run's: of the first node without its rank. */
export function portPath(nodeRank: number, port: number): string {
  return nodeRank === 0 ? String(port) : `${nodeRank}:${port}`;
}
