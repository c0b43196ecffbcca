/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

/** A cluster of the configuration, and whether it answers. */
export interface ICluster {
  readonly name: string;
  readonly orchestrator: string;
  readonly default: boolean;
  readonly state: string;
  readonly reason: string | null;
  readonly nodes: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A node. Memory is in bytes. */
export interface IClusterNode {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
  readonly cpus: number | null;
  readonly cpus_free: number | null;
  readonly memory: number | null;
  readonly accelerators: number;
  readonly accelerators_free: number;
  readonly accelerator_type: string | null;
  readonly instance_type: string | null;
  readonly instance_group: string | null;
  readonly queues: readonly string[];
  readonly jobs: readonly string[];
}

/** A page of clusters. */
export interface IClusters {
  readonly clusters: readonly ICluster[];
  readonly next: string | null;
  readonly total: number;
}

/** One entry of the queue of all users; `run_id` is set when it is a run of ours. */
export interface IJob {
  readonly scheduler_id: string;
  readonly name: string;
  readonly user: string;
  readonly state: string;
  readonly queue: string | null;
  readonly reason: string | null;
  readonly nodes: readonly string[];
  readonly run_id: string | null;
  readonly submitted_at: string | null;
  readonly started_at: string | null;
}

/** A page of jobs. */
export interface IJobs {
  readonly jobs: readonly IJob[];
  readonly next: string | null;
  readonly total: number;
}

/** A page of nodes. */
export interface INodes {
  readonly nodes: readonly IClusterNode[];
  readonly next: string | null;
  readonly total: number;
}

/** A place where jobs wait. The time limit is in seconds. */
export interface IQueue {
  readonly name: string;
  readonly state: string;
  readonly default: boolean;
  readonly nodes: number | null;
  readonly slots: number | null;
  readonly slots_free: number | null;
  readonly time_limit: number | null;
  readonly running: number;
  readonly waiting: number;
}

/** A page of queues. */
export interface IQueues {
  readonly queues: readonly IQueue[];
  readonly next: string | null;
  readonly total: number;
}

/** Which rows of a table. */
export interface ITableQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
}
