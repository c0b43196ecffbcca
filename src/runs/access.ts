import type { Schema } from '../api';

/** How to open a shell on one of a run's nodes. */
export type IShell = Schema<'Shell'>;

/** What of a run's nodes can be reached now. */
export type IRunAccess = Schema<'RunAccess'>;

/** What the programs of one of a run's nodes offer. */
export type INodeServices = Schema<'NodeServices'>;

/** TensorBoard's. */
export const USUAL_PORT = 6006;

const MOST_PORT = 65_535;

/** A port as it was typed; null for what is none. */
export function portOf(text: string): number | null {
  const port = /^\s*\d{1,5}\s*$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= MOST_PORT ? port : null;
}

/** The part of a port's address behind the run's: of the first node without its rank. */
export function portPath(nodeRank: number, port: number): string {
  return nodeRank === 0 ? String(port) : `${nodeRank}:${port}`;
}
