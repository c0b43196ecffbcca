import {
  asText,
  listOf,
  numberOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';

/**
 * A cluster of the configuration, and whether it answers.
 */
export interface ICluster {
  readonly name: string;
  readonly orchestrator: string;
  readonly isDefault: boolean;
  readonly state: string;
  readonly reason: string | null;
  readonly nodes: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
}

/**
 * A cell's value: a table shows what the server sends.
 */
export type CellValue = string | number | boolean | null | readonly string[];

/**
 * A row of a cluster's table, by the server's names.
 */
export type TableRow = Readonly<Record<string, CellValue>>;

/** What of a cluster is shown as a table. */
export type TableKind = 'nodes' | 'queues' | 'jobs';

/**
 * Which part of a table is wanted; the server sorts, filters and cuts.
 */
export interface ITableQuery {
  readonly limit: number;
  readonly cursor?: string;
  /** A column's name, with a minus in front for falling order. */
  readonly sort?: string;
  /** Words that must all occur in the row. */
  readonly filter?: string;
}

/**
 * A part of a table.
 */
export interface ITablePage {
  readonly rows: readonly TableRow[];
  readonly next: string | null;
  readonly total: number | null;
}

/** A cluster from an answer. */
export function decodeCluster(value: unknown): ICluster {
  const from = recordOf(value, 'cluster');
  return {
    name: textOf(from, 'name'),
    orchestrator: textOrNull(from, 'orchestrator') ?? '',
    isDefault: from.default === true,
    state: textOrNull(from, 'state') ?? 'unknown',
    reason: textOrNull(from, 'reason'),
    nodes: numberOrNull(from, 'nodes'),
    running: numberOrNull(from, 'running'),
    waiting: numberOrNull(from, 'waiting')
  };
}

/** A part of a table from an answer. */
export function decodeTable(kind: TableKind, value: unknown): ITablePage {
  const from = recordOf(value, kind);
  return {
    rows: listOf(from, kind, decodeRow),
    next: textOrNull(from, 'next'),
    total: numberOrNull(from, 'total')
  };
}

function decodeRow(value: unknown): TableRow {
  const row: Record<string, CellValue> = {};
  for (const [name, cell] of Object.entries(recordOf(value, 'row'))) {
    if (Array.isArray(cell)) {
      row[name] = cell.map(asText);
    } else if (
      typeof cell === 'string' ||
      typeof cell === 'number' ||
      typeof cell === 'boolean'
    ) {
      row[name] = cell;
    } else {
      row[name] = null;
    }
  }
  return row;
}
