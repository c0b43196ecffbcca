/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';

/** Names that this user may give in a spec, by its field; a field that is not here has no known list. */
export interface IChoices {
  readonly choices: Readonly<Record<string, readonly string[]>>;
}

/** A cluster of the configuration, and whether it answers. `actions` are what can be done to runs and jobs there: `adopt` to jobs only; with `ports` those of running runs can be reached. `changes` are what the action `change` can change. `notes` say what of the cluster is hidden from the user, and why. `as_of` says of when the numbers are, where it does not answer now. */
export interface ICluster {
  readonly name: string;
  readonly orchestrator: string;
  readonly default: boolean;
  readonly state: string;
  readonly reason: string | null;
  readonly nodes: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
  readonly actions: readonly string[];
  readonly changes: readonly ('time_limit' | 'queue')[];
  readonly notes: readonly string[];
  readonly as_of: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A node. Memory is in bytes; free is what a new job can get, null where that cannot be known. */
export interface IClusterNode {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
  readonly reason_since: string | null;
  readonly reason_by: string | null;
  readonly cpus: number | null;
  readonly cpus_free: number | null;
  readonly cpu_load: number | null;
  readonly memory: number | null;
  readonly memory_free: number | null;
  readonly accelerators: number;
  readonly accelerators_free: number | null;
  readonly accelerator_type: string | null;
  readonly resources: readonly IDevice[];
  readonly features: readonly string[];
  readonly instance_type: string | null;
  readonly instance_group: string | null;
  readonly comment: string | null;
  readonly queues: readonly string[];
  readonly jobs: readonly string[];
}

/** A page of clusters. */
export interface IClusters {
  readonly clusters: readonly ICluster[];
  readonly next: string | null;
  readonly total: number;
}

/** Devices of one name and type: GPUs of a model, parts of GPUs, other things that a cluster counts. `free` is how many a new job can get. `used_at` are the numbers of devices that jobs have, `shared_at` of those that jobs have parts of, `first` is the number of the first device; where devices are not numbered these are empty and null. `accelerator` says whether it computes. */
export interface IDevice {
  readonly name: string;
  readonly type: string | null;
  readonly total: number;
  readonly used: number;
  readonly free: number;
  readonly used_at: readonly number[];
  readonly shared_at: readonly number[];
  readonly first: number | null;
  readonly accelerator: boolean;
}

/** One entry of the queue of all users; `run_id` is set when it is a run of yours. The time limit is in seconds. */
export interface IJob {
  readonly scheduler_id: string;
  readonly name: string;
  readonly user: string;
  readonly state: string;
  readonly mine: boolean;
  readonly queue: string | null;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly reason_detail: string | null;
  readonly nodes: readonly string[];
  readonly node_count: number | null;
  readonly cpus: number | null;
  readonly accelerators: number;
  readonly resources: readonly IDevice[];
  readonly array: string | null;
  readonly account: string | null;
  readonly qos: string | null;
  readonly priority: number | null;
  readonly time_limit: number | null;
  readonly run_id: string | null;
  readonly submitted_at: string | null;
  readonly started_at: string | null;
  readonly ends_at: string | null;
  readonly expected_start: string | null;
}

export type JobAction = 'cancel' | 'hold' | 'release' | 'requeue' | 'change';

/** What to do to which jobs. */
export interface IJobActionBody {
  /** What to do. */
  readonly action: JobAction;
  /** The scheduler's ids of the jobs, as the list of jobs has them. */
  readonly jobs: readonly string[];
  /** With the action `change`: the new time limit, counted from the start: seconds, or a text such as 2h. */
  readonly time_limit?: number | string | null;
  /** With the action `change`: the queue that they are moved to, while they wait. */
  readonly queue?: string | null;
}

/** What came of it for one job. */
export interface IJobResult {
  readonly scheduler_id: string;
  readonly ok: boolean;
  readonly error: IError | null;
}

/** One result for each job, in their order. */
export interface IJobResults {
  readonly results: readonly IJobResult[];
}

/** A page of jobs; of when they were seen last, when the cluster does not answer. `notes` say what of the table is hidden from the user, and why. */
export interface IJobs {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly jobs: readonly IJob[];
  readonly next: string | null;
  readonly total: number;
  readonly notes: readonly string[];
}

/** Which rows of the table of jobs. */
export interface IJobsQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
  /** Only jobs that have ended (true), or only those that have not (false). */
  readonly ended?: boolean | null;
}

export type NodeAction = 'reboot' | 'replace' | 'drain' | 'resume';

/** What to do to which nodes. */
export interface INodeActionBody {
  /** What to do: AWS reboots and replaces, the scheduler drains (no new jobs; those that run go on) and resumes. */
  readonly action: NodeAction;
  /** Instance ids, the scheduler's names, or names in the private network. */
  readonly nodes: readonly string[];
  /** With the action `drain`: why, in one line, for others to read. A preview can be had without. */
  readonly reason?: string | null;
}

/** What would become of the nodes, and what there is to know before: sentences for people. Nothing has been done. */
export interface INodeActionPreview {
  readonly action: NodeAction;
  readonly cluster: string;
  readonly reason: string | null;
  readonly nodes: readonly INodeToActOn[];
  readonly effects: readonly string[];
  readonly notes: readonly string[];
}

/** What came of it for one node. `ok` says that AWS or the scheduler took it: a reboot or replacement goes on after that. */
export interface INodeResult {
  readonly name: string;
  readonly instance: string | null;
  readonly node: string | null;
  readonly ok: boolean;
  readonly error: IError | null;
}

/** One result for each node, in their order; a node that was named in several ways has one. */
export interface INodeResults {
  readonly results: readonly INodeResult[];
  readonly notes: readonly string[];
}

/** What would become of one node. `jobs` are those that run on it, null where that is not known; with a `refusal` it would not be tried. */
export interface INodeToActOn {
  readonly name: string;
  readonly instance: string | null;
  readonly node: string | null;
  readonly jobs: readonly IJob[] | null;
  readonly effects: readonly string[];
  readonly refusal: IError | null;
}

/** A page of nodes; of when they were seen last, when the cluster does not answer. `notes` say what of the table is hidden from the user, and why. */
export interface INodes {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly nodes: readonly IClusterNode[];
  readonly next: string | null;
  readonly total: number;
  readonly notes: readonly string[];
}

/** A place where jobs wait. Times are in seconds; empty lists of groups, accounts and QoS allow all. */
export interface IQueue {
  readonly name: string;
  readonly state: string;
  readonly default: boolean;
  readonly usable: boolean | null;
  readonly groups: readonly string[];
  readonly accounts: readonly string[];
  readonly qos: readonly string[];
  readonly denied: readonly string[];
  readonly nodes: number | null;
  readonly nodes_free: number | null;
  readonly min_nodes: number | null;
  readonly max_nodes: number | null;
  readonly slots: number | null;
  readonly slots_free: number | null;
  readonly cpus: number | null;
  readonly cpus_free: number | null;
  readonly accelerators: number;
  readonly accelerators_free: number;
  readonly resources: readonly IDevice[];
  readonly time_limit: number | null;
  readonly default_time: number | null;
  readonly priority: number | null;
  readonly running: number;
  readonly waiting: number;
  readonly reason: string | null;
  readonly cluster_queue: string | null;
  readonly quotas: readonly IQuota[];
}

/** A page of queues; of when they were seen last, when the cluster does not answer. `notes` say what of the table is hidden from the user, and why. */
export interface IQueues {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly queues: readonly IQueue[];
  readonly next: string | null;
  readonly total: number;
  readonly notes: readonly string[];
}

/** What a queue may give of one resource on nodes of one kind (`flavor`). Memory is in bytes. `nominal` is the queue's own, `used` what jobs have now with what is `borrowed` from other queues, `free` what a new job can get now, `most` what one job can ever get. */
export interface IQuota {
  readonly flavor: string;
  readonly resource: string;
  readonly nominal: number;
  readonly used: number;
  readonly borrowed: number;
  readonly free: number;
  readonly most: number;
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
