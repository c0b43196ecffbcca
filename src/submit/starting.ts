import type { Schema } from '../api';

type IOverview = Schema<'ClusterOverview'>;
type IQueue = Schema<'Queue'>;

/** Milliseconds after which free resources are old: nothing is promised from them. */
export const FRESH_MS = 15_000;

/**
 * How big a run is.
 */
export interface ISize {
  readonly nodes: number;
  /** On each node. */
  readonly gpus: number;
  /** On each node. */
  readonly ranks: number;
}

/**
 * Whether a run would start, from what is free: `waits` says what it would wait for.
 */
export type Start =
  | { readonly kind: 'now' | 'unknown' | 'closed' }
  | { readonly kind: 'waits'; readonly for: 'gpus' | 'nodes' | 'slots' }
  | { readonly kind: 'behind'; readonly jobs: number };

const NOW: Start = { kind: 'now' };
const UNKNOWN: Start = { kind: 'unknown' };

/** The queue of a run: the named one, or the default one. */
export function queueOf(
  overview: IOverview | null,
  name: string
): IQueue | null {
  const queues = overview?.queues ?? [];
  const found =
    name === ''
      ? (queues.find(queue => queue.default) ??
        (queues.length === 1 ? queues[0] : undefined))
      : queues.find(queue => queue.name === name);
  return found ?? null;
}

/**
 * Whether a run of this size would start now. The scheduler decides: where other jobs wait in the queue, nothing is promised.
 */
export function startOf(
  overview: IOverview,
  queue: IQueue | null,
  size: ISize
): Start {
  if (queue && queue.state !== 'up') {
    return { kind: 'closed' };
  }
  const missing = missingIn(overview, queue, size);
  if (missing !== null) {
    return missing === 'unknown' ? UNKNOWN : { kind: 'waits', for: missing };
  }
  return queue && queue.waiting > 0
    ? { kind: 'behind', jobs: queue.waiting }
    : NOW;
}

function missingIn(
  overview: IOverview,
  queue: IQueue | null,
  { gpus, nodes }: ISize
): 'gpus' | 'nodes' | 'slots' | 'unknown' | null {
  if (queue?.slots_free !== null && queue?.slots_free !== undefined) {
    return queue.slots_free > 0 ? null : 'slots';
  }
  if (gpus > 0) {
    const free = queue ? freeGpus(queue) : null;
    const fitting = overview.nodes.filter(
      node => node.usable && node.gpus - node.used >= gpus
    );
    const fits =
      fitting.length >= nodes && (free === null || free.free >= gpus * nodes);
    return fits ? null : 'gpus';
  }
  if (!queue) {
    return 'unknown';
  }
  if (queue.nodes_free !== null && queue.nodes_free >= nodes) {
    return null;
  }
  return queue.cpus_free === 0 ? 'nodes' : 'unknown';
}

/**
 * GPUs of a queue; null when it has none.
 */
export function freeGpus(
  queue: IQueue
): { readonly free: number; readonly total: number } | null {
  const quotas = queue.quotas.filter(one => /gpu$/.test(one.resource));
  if (quotas.length > 0) {
    return {
      free: sum(quotas.map(one => one.free)),
      total: sum(quotas.map(one => one.most))
    };
  }
  return queue.accelerators > 0
    ? { free: queue.accelerators_free, total: queue.accelerators }
    : null;
}

/** The GPUs of the largest node. */
export function mostGpus(overview: IOverview | null): number {
  return Math.max(0, ...(overview?.nodes ?? []).map(node => node.gpus));
}

/** The GPU model, where all of a queue's or a cluster's GPUs are of one. */
export function gpuModel(
  overview: IOverview | null,
  queue: IQueue | null
): string | null {
  const types =
    queue && queue.resources.length > 0
      ? queue.resources.filter(one => one.accelerator).map(one => one.type)
      : (overview?.gpus ?? []).map(one => one.type);
  const known = new Set(types);
  return known.size === 1 ? [...known][0] : null;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}
