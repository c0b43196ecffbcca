import type { Schema } from '../api';

export type INodeTile = Schema<'NodeTile'>;
export type IJob = Schema<'Job'>;

/** How a GPU of the map is drawn: used by the user's job, by another user's, free, or unavailable. */
export type CellUse = 'mine' | 'other' | 'free' | 'drained' | 'failed';

/**
 * One GPU of a node; of a node without GPUs, the node.
 */
export interface ICell {
  readonly use: CellUse;
  /** The scheduler's id of the job that has it, if that is known. */
  readonly job: string | null;
}

/** States of nodes that broke; others that accept no jobs were taken out of service. */
const BROKEN = new Set([
  'failing',
  'failed',
  'down',
  'not-answering',
  'misconfigured',
  'unknown'
]);

/** The cells of a node: the GPUs of its jobs in the order of the jobs, then those without a job. */
export function cellsOf(
  tile: INodeTile,
  jobs: ReadonlyMap<string, IJob>
): ICell[] {
  const useOf = (job: string): CellUse =>
    jobs.get(job)?.mine ? 'mine' : 'other';
  const rest: CellUse = tile.usable
    ? 'free'
    : BROKEN.has(tile.state)
      ? 'failed'
      : 'drained';
  if (tile.gpus === 0) {
    const [first] = tile.shares;
    return [
      first
        ? { use: useOf(first.job), job: first.job }
        : { use: rest, job: null }
    ];
  }
  const cells = tile.shares.flatMap(({ gpus, job }) =>
    Array.from({ length: gpus }, (): ICell => ({ use: useOf(job), job }))
  );
  while (cells.length < tile.used) {
    cells.push({ use: 'other', job: null });
  }
  while (cells.length < tile.gpus) {
    cells.push({ use: rest, job: null });
  }
  return cells;
}

/** From this number of nodes, the map is a dense heat map without names. */
export const DENSE = 100;

/**
 * Where the nodes of a map lie: equal blocks in rows. Lengths are in CSS pixels.
 */
export interface IMapLayout {
  readonly columns: number;
  readonly width: number;
  readonly height: number;
  /** The block of a node. */
  readonly blockWidth: number;
  readonly blockHeight: number;
  /** Between two blocks. */
  readonly gap: number;
  /** Width of the name before the cells; 0 without names. */
  readonly labelWidth: number;
  readonly cell: number;
  readonly cellGap: number;
}

/**
 * The layout of a map.
 *
 * @param count - nodes
 * @param cells - cells of the largest node
 * @param width - of the page
 * @param labelWidth - of the longest name
 */
export function layoutOf(
  count: number,
  cells: number,
  width: number,
  labelWidth: number
): IMapLayout {
  const dense = count >= DENSE;
  const cell = dense ? 6 : 14;
  const cellGap = dense ? 1 : 2;
  const gap = dense ? 5 : 8;
  const label = dense ? 0 : labelWidth + 8;
  const blockWidth = label + cells * (cell + cellGap) - cellGap;
  const blockHeight = cell;
  const columns = Math.max(
    1,
    Math.min(count, Math.floor((width + 2 * gap) / (blockWidth + 2 * gap)))
  );
  const rows = Math.ceil(count / columns);
  return {
    ...{ blockHeight, blockWidth, cell, cellGap, columns, gap },
    labelWidth: label,
    width: columns * (blockWidth + 2 * gap) - 2 * gap,
    height: Math.max(0, rows * (blockHeight + gap) - gap)
  };
}

/** The left upper corner of a node's block. */
export function cornerOf(layout: IMapLayout, node: number): [number, number] {
  const column = node % layout.columns;
  const row = Math.floor(node / layout.columns);
  return [
    column * (layout.blockWidth + 2 * layout.gap),
    row * (layout.blockHeight + layout.gap)
  ];
}

/**
 * The node and the cell at a place; the cell is -1 on the name.
 *
 * @returns null between the blocks
 */
export function cellAt(
  layout: IMapLayout,
  count: number,
  x: number,
  y: number
): { node: number; cell: number } | null {
  const wide = layout.blockWidth + 2 * layout.gap;
  const high = layout.blockHeight + layout.gap;
  const column = Math.floor(x / wide);
  const row = Math.floor(y / high);
  const node = row * layout.columns + column;
  const inside =
    x >= 0 &&
    y >= 0 &&
    column < layout.columns &&
    x % wide < layout.blockWidth &&
    y % high < layout.blockHeight;
  if (!inside || node >= count) {
    return null;
  }
  const left = (x % wide) - layout.labelWidth;
  return {
    node,
    cell: left < 0 ? -1 : Math.floor(left / (layout.cell + layout.cellGap))
  };
}
