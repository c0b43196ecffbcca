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

/** A cluster of the configuration, whether it answers, and what can be done there to runs and jobs (`cancel`, `hold` ...). `changes` is what of a run or job can be changed. `reason` says why it is not `up`, `notes` what of it is hidden from this user, a sentence each. `as_of` says when the numbers were seen where it does not answer now. */
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

/** A node. Memory is in bytes, `reason_since` in Unix seconds; `state` is one of `NODE_STATES`; the load is that of the last minute. What is free is null where it cannot be known; its `resources` are not told then. */
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
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  readonly clusters: readonly ICluster[];
}

/** Devices of one name and type: GPUs of a model, parts of GPUs, other things that a cluster counts. */
export interface IDevice {
  /** What it is called, such as `gpu` or `shard`. */
  readonly name: string;
  /** Its type, such as `h100` or the MIG profile `1g.10gb`. */
  readonly type: string | null;
  /** How many there are. */
  readonly total: number;
  /** How many jobs have. */
  readonly used: number;
  /** How many a new job can get: none on a node that takes no jobs. */
  readonly free: number;
  /** Numbers of the devices that jobs have, where the cluster says them. */
  readonly used_at: readonly number[];
  /** Numbers of the devices that jobs have parts of. */
  readonly shared_at: readonly number[];
  /** Number of the first device, where they are numbered. */
  readonly first: number | null;
  /** Whether it computes. */
  readonly accelerator: boolean;
}

/** One entry of the queue of all users. Times are Unix seconds, the time limit is in seconds. */
export interface IJob {
  readonly scheduler_id: string;
  readonly name: string;
  readonly user: string;
  /** One of `JOB_STATES`. */
  readonly state: string;
  /** Whether it is this user's. */
  readonly mine: boolean;
  readonly queue: string | null;
  readonly reason: string | null;
  readonly reason_code: string | null;
  /** What the cluster itself said, where the reason puts it into words. */
  readonly reason_detail: string | null;
  readonly nodes: readonly string[];
  readonly node_count: number | null;
  readonly cpus: number | null;
  /** How many it has, or wants, on all nodes together. */
  readonly accelerators: number;
  /** The same by type, with other devices. */
  readonly resources: readonly IDevice[];
  /** The tasks of an array that the entry stands for, such as `3-5%2`. */
  readonly array: string | null;
  readonly account: string | null;
  readonly qos: string | null;
  readonly priority: number | null;
  readonly time_limit: number | null;
  /** Set when it is a run of this user's that lies on this storage partition. */
  readonly run_id: string | null;
  readonly submitted_at: string | null;
  readonly started_at: string | null;
  /** When it ended; of a running one, when it will have reached its time limit. */
  readonly ends_at: string | null;
  /** When the scheduler plans to start it, if it has a plan. */
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

/** What came of an action on one job: no error when it was done. */
export interface IJobResult {
  readonly scheduler_id: string;
  readonly error: IError | null;
  readonly ok: boolean;
}

/** One result for each job, in their order. */
export interface IJobResults {
  readonly results: readonly IJobResult[];
}

/** A page of jobs. */
export interface IJobs {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  /** When the cluster said this; null when it has just said it. */
  readonly as_of: string | null;
  /** Why nothing newer is known. */
  readonly problem: IError | null;
  /** What of the table is hidden from the user, and why. */
  readonly notes: readonly string[];
  readonly jobs: readonly IJob[];
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

/** What is to be done to which nodes of which cluster, and what there is to know before. */
export interface INodeActionPreview {
  /** What is to be done. */
  readonly action: NodeAction;
  /** The HyperPod cluster (name or ARN), or the configured one for what its scheduler does. */
  readonly cluster: string;
  /** The nodes, each once, in the order in which they were named. */
  readonly nodes: readonly INodeToActOn[];
  /** What will become of all of them, a sentence each. */
  readonly effects: readonly string[];
  /** What could not be found out, a sentence each. */
  readonly notes: readonly string[];
  /** The user's reason in one line. */
  readonly reason: string | null;
}

/** What came of an action on one node: no error when AWS or the scheduler took it. */
export interface INodeResult {
  /** How the user named the node. */
  readonly name: string;
  /** Its instance id; a replaced node gets another. */
  readonly instance: string | null;
  /** The scheduler's name for it. */
  readonly node: string | null;
  /** Why it was not done, or is not known to be. */
  readonly error: IError | null;
  readonly ok: boolean;
}

/** One result for each node, in their order; a node that was named in several ways has one. */
export interface INodeResults {
  readonly results: readonly INodeResult[];
  readonly notes: readonly string[];
}

/** What is to be done to one node. */
export interface INodeToActOn {
  /** How the user named it. */
  readonly name: string;
  /** Its instance, where AWS knows it. */
  readonly instance: string | null;
  /** What the scheduler knows of it. */
  readonly node: string | null;
  /** The jobs that run on it; null where that is not known. */
  readonly jobs: readonly IJob[] | null;
  /** What will become of it and of them, a sentence each. */
  readonly effects: readonly string[];
  /** Why it will not be tried. */
  readonly refusal: IError | null;
}

/** A page of nodes. */
export interface INodes {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  /** When the cluster said this; null when it has just said it. */
  readonly as_of: string | null;
  /** Why nothing newer is known. */
  readonly problem: IError | null;
  /** What of the table is hidden from the user, and why. */
  readonly notes: readonly string[];
  readonly nodes: readonly IClusterNode[];
}

/** A place where jobs wait. Times are in seconds. */
export interface IQueue {
  readonly name: string;
  /** `up`; `down` (jobs wait, none starts), `draining` (no new ones) or `inactive` (neither). */
  readonly state: string;
  readonly default: boolean;
  /** Whether this user may use it; null when that is not known. */
  readonly usable: boolean | null;
  /** Unix groups that may use it; empty: all. */
  readonly groups: readonly string[];
  /** Accounts that may; empty: all. */
  readonly accounts: readonly string[];
  /** QoS that may; empty: all. */
  readonly qos: readonly string[];
  /** Accounts and QoS that may not. */
  readonly denied: readonly string[];
  readonly nodes: number | null;
  readonly nodes_free: number | null;
  readonly min_nodes: number | null;
  /** The most nodes that a job may have. */
  readonly max_nodes: number | null;
  readonly slots: number | null;
  readonly slots_free: number | null;
  readonly cpus: number | null;
  readonly cpus_free: number | null;
  readonly accelerators: number;
  readonly accelerators_free: number;
  readonly resources: readonly IDevice[];
  /** The longest time that a job may ask for; null without a limit. */
  readonly time_limit: number | null;
  /** The time of a job that asks for none. */
  readonly default_time: number | null;
  /** Jobs of queues with a higher one go first. */
  readonly priority: number | null;
  readonly running: number;
  readonly waiting: number;
  /** Why nothing starts from it. */
  readonly reason: string | null;
  /** The quota that it shares with other queues, by its name. */
  readonly cluster_queue: string | null;
  /** What it may give, where jobs get quota and not nodes. */
  readonly quotas: readonly IQuota[];
}

/** A page of queues. */
export interface IQueues {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  /** When the cluster said this; null when it has just said it. */
  readonly as_of: string | null;
  /** Why nothing newer is known. */
  readonly problem: IError | null;
  /** What of the table is hidden from the user, and why. */
  readonly notes: readonly string[];
  readonly queues: readonly IQueue[];
}

/** What a queue may give of one resource on nodes of one kind. Memory is in bytes. */
export interface IQuota {
  /** The kind of nodes. */
  readonly flavor: string;
  /** What is counted, by the cluster's own name for it. */
  readonly resource: string;
  /** What is the queue's own. */
  readonly nominal: number;
  /** What jobs have of it now, with what is borrowed. */
  readonly used: number;
  /** What of that other queues lend it. */
  readonly borrowed: number;
  /** What a new job can get now, with what others would lend. */
  readonly free: number;
  /** What one job can ever get. */
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
