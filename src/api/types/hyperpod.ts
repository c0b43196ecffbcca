/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';

/** Which events. */
export interface IEventsQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
  /** Ask AWS now. */
  readonly refresh?: boolean;
  /** Only those that are so bad, or worse. */
  readonly level?: 'info' | 'warn' | 'error' | null;
  /** Only those of this instance group. */
  readonly group?: string | null;
  /** Only those of the instance of this id, or of those whose ids begin so. */
  readonly node?: string | null;
}

/** A HyperPod cluster. */
export interface IHyperpodClusterAnswer {
  /** Its name. */
  readonly name: string;
  /** Its ARN. */
  readonly arn: string;
  /** Its region. */
  readonly region: string;
  /** AWS' word for its state. */
  readonly status: string;
  /** When it was made. */
  readonly created_at: string | null;
  /** `slurm` or `kubernetes`; null where AWS does not say it. */
  readonly orchestrator: string | null;
  /** ARN of the EKS cluster that orchestrates it. */
  readonly eks_arn: string | null;
  /** `Automatic` or `None`: whether HyperPod repairs nodes by itself. */
  readonly node_recovery: string | null;
  /** `Continuous` where instances come and go one by one. */
  readonly provisioning: string | null;
  /** Whether updates of its software are due, such as `UpdateAvailable`. */
  readonly image_status: string | null;
  /** The names under which this machine's configuration has it. */
  readonly configured_as: readonly string[];
  /** Where this machine has the file systems that its instances mount; empty: nowhere; null: not known, for AWS does not say which it mounts (life cycle scripts may mount others). */
  readonly mounted_here: readonly string[] | null;
  /** What is to be said of it: why it failed, or why its description could not be had. */
  readonly reason: string | null;
  /** Whether one can submit to it from this machine; null where that is not asked. */
  readonly reach: IHyperpodReach | null;
  /** What else AWS' description says of it. */
  readonly settings: readonly IHyperpodSetting[];
  /** Its instance groups. */
  readonly groups: readonly IHyperpodGroup[];
  /** When AWS was asked; null: it was not. */
  readonly as_of: string | null;
  /** Why there is nothing newer or not all. */
  readonly problem: IError | null;
  /** Whether more is on its way. */
  readonly loading: boolean;
  /** What there is to say of it. */
  readonly notes: readonly string[];
  /** Its tags; null where they could not be had. */
  readonly tags: readonly IHyperpodTag[] | null;
  /** The log group of its life cycle scripts and health checks. */
  readonly log_group: string;
  readonly links: IHyperpodLinks;
  readonly state: string;
  readonly nodes: number | null;
  readonly target: number | null;
}

/** A HyperPod cluster. */
export interface IHyperpodClusterRow {
  /** Its name. */
  readonly name: string;
  /** Its ARN. */
  readonly arn: string;
  /** Its region. */
  readonly region: string;
  /** Its state in our words. */
  readonly state: string;
  /** The same in AWS'. */
  readonly status: string;
  /** `slurm` or `kubernetes`; null where it is not known (yet). */
  readonly orchestrator: string | null;
  /** How many instances it has. */
  readonly nodes: number | null;
  /** How many it is to have. */
  readonly target: number | null;
  /** When it was made. */
  readonly created_at: string | null;
  /** Whether updates of its software are due. */
  readonly image_status: string | null;
  /** The names under which the configuration has it. */
  readonly configured_as: readonly string[];
  /** Where its file systems are mounted on this machine; null where it is not known which it has. */
  readonly mounted_here: readonly string[] | null;
  /** When AWS was asked for its description; null: not yet, or it could not be had. */
  readonly described_at: string | null;
  /** What is to be said of it. */
  readonly reason: string | null;
  /** A word for whether one can submit to it from here (`model.reach.REACHES`). */
  readonly reach: string | null;
  /** The same as a sentence. */
  readonly reach_reason: string | null;
  /** What to do about it. */
  readonly reach_next: string | null;
}

/** A page of HyperPod clusters. */
export interface IHyperpodClusters {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  /** When AWS was asked; null: it was not. */
  readonly as_of: string | null;
  /** Why there is nothing newer or not all. */
  readonly problem: IError | null;
  /** Whether more is on its way. */
  readonly loading: boolean;
  /** What there is to say of it. */
  readonly notes: readonly string[];
  readonly clusters: readonly IHyperpodClusterRow[];
}

/** Something that happened to a cluster. */
export interface IHyperpodEvent {
  /** Its id. */
  readonly event_id: string;
  /** When. */
  readonly time: string;
  /** `info`, `warn`, `error`, or AWS' own word; null where AWS says none. */
  readonly level: string | null;
  /** What it is of: `cluster`, `group`, `instance`, or AWS' own word. */
  readonly resource: string;
  /** The instance group. */
  readonly group: string | null;
  /** The instance id. */
  readonly instance: string | null;
  /** AWS' sentence. */
  readonly description: string | null;
  /** Why it failed: known once its details were looked at. */
  readonly reason: string | null;
  /** How often it was said within a moment. */
  readonly times: number;
  /** Whether it is from this machine's journal, since AWS does not list it (any more). */
  readonly journal: boolean;
}

/** Something that happened to a cluster, with its details. */
export interface IHyperpodEventDetail {
  /** Its id. */
  readonly event_id: string;
  /** When. */
  readonly time: string;
  /** `info`, `warn`, `error`, or AWS' own word; null where AWS says none. */
  readonly level: string | null;
  /** What it is of: `cluster`, `group`, `instance`, or AWS' own word. */
  readonly resource: string;
  /** The instance group. */
  readonly group: string | null;
  /** The instance id. */
  readonly instance: string | null;
  /** AWS' sentence. */
  readonly description: string | null;
  /** Why it failed: known once its details were looked at. */
  readonly reason: string | null;
  /** How often it was said within a moment. */
  readonly times: number;
  /** Whether it is from this machine's journal, since AWS does not list it (any more). */
  readonly journal: boolean;
  /** What the details have besides, as AWS tells it. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A page of events. `groups` and `instances` are those of which there are events: the newest first, and no more than some. */
export interface IHyperpodEvents {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  /** When AWS was asked; null: it was not. */
  readonly as_of: string | null;
  /** Why there is nothing newer or not all. */
  readonly problem: IError | null;
  /** Whether more is on its way. */
  readonly loading: boolean;
  /** What there is to say of it. */
  readonly notes: readonly string[];
  readonly events: readonly IHyperpodEvent[];
  readonly groups: readonly string[];
  readonly instances: readonly string[];
}

/** An instance group. */
export interface IHyperpodGroup {
  /** Its name. */
  readonly name: string;
  /** AWS' word for its state; null where AWS says none. */
  readonly status: string | null;
  /** Type of its instances; null where it is of several. */
  readonly instance_type: string | null;
  /** How many instances it has. */
  readonly current: number;
  /** How many it is to have. */
  readonly target: number;
  /** What its instances are to Slurm, such as `Controller`, where AWS says it. */
  readonly slurm_role: string | null;
  /** The file systems that its instances mount. */
  readonly storage: readonly ILustreStorage[];
  /** `Spot` or `OnDemand`; null where AWS does not say it. */
  readonly capacity: string | null;
  /** The life cycle script that an instance runs when it is made, as an address in S3. */
  readonly script: string | null;
  /** The role that its instances act with. */
  readonly role_arn: string | null;
  /** The deep health checks that an instance has to pass when it starts. */
  readonly checks: readonly string[];
  readonly state: string | null;
}

/** Places in the web console of the cluster's AWS partition; null where they are not known. */
export interface IHyperpodLinks {
  readonly cluster: string | null;
  readonly logs: string | null;
  readonly eks: string | null;
}

/** Which rows of the table of clusters. */
export interface IHyperpodListQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
  /** Ask AWS now. */
  readonly refresh?: boolean;
  /** Those of this region; default: the one that AWS is asked in where nobody names one. A cluster of another one is asked for by its ARN. */
  readonly region?: string | null;
}

/** A node of a HyperPod cluster, as AWS and the scheduler know it. */
export interface IHyperpodNode {
  /** The instance id; the scheduler's name where AWS lists no instance. */
  readonly name: string;
  /** AWS' state in our words; `NOT_LISTED` where AWS lists none. */
  readonly state: string;
  /** The same in AWS' words. */
  readonly status: string | null;
  /** AWS' sentence on the state, and what is to be said where one side does not have the node. */
  readonly reason: string | null;
  /** Its instance group. */
  readonly instance_group: string | null;
  /** Its type. */
  readonly instance_type: string | null;
  /** When the instance was started. */
  readonly launched_at: string | null;
  /** Its name in the private network. */
  readonly host: string | null;
  /** Version of its software. */
  readonly image_version: string | null;
  /** Whether updates of it are due. */
  readonly image_status: string | null;
  /** The scheduler's name of it. */
  readonly node: string | null;
  /** The scheduler's state of it. */
  readonly scheduler_state: string | null;
  /** The scheduler's sentence on that. */
  readonly scheduler_reason: string | null;
  /** How many GPUs or the like the scheduler has there; null where it does not know the node. */
  readonly accelerators: number | null;
  /** How many of them a new job can get. */
  readonly accelerators_free: number | null;
  /** The scheduler's ids of the jobs on it. */
  readonly jobs: readonly string[];
}

/** A page of nodes of a HyperPod cluster; `changing` while some of them, on whatever page, come or go: then they are looked at every 10 seconds. */
export interface IHyperpodNodes {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  /** When AWS was asked; null: it was not. */
  readonly as_of: string | null;
  /** Why there is nothing newer or not all. */
  readonly problem: IError | null;
  /** Whether more is on its way. */
  readonly loading: boolean;
  /** What there is to say of it. */
  readonly notes: readonly string[];
  readonly nodes: readonly IHyperpodNode[];
  readonly changing: boolean;
}

/** How to look at a HyperPod cluster. */
export interface IHyperpodQuery {
  /** Ask AWS now. */
  readonly refresh?: boolean;
}

/** Whether one can submit to a cluster from here. */
export interface IHyperpodReach {
  /** A word of `REACHES`. */
  readonly word: string;
  /** The same as a sentence. */
  readonly sentence: string;
  /** What to do about it. */
  readonly next_step: string | null;
  /** What to add to the configuration file, in TOML; a comment in it says what is still to be filled in. */
  readonly config: string | null;
}

/** A setting. */
export interface IHyperpodSetting {
  /** A word for it; AWS' own name where this package does not know the setting. */
  readonly name: string;
  /** Its value, in AWS' words; of several parts as JSON. */
  readonly value: string;
  /** What it means; null where this package does not know it. */
  readonly meaning: string | null;
}

/** Which rows of a table of what AWS knows. */
export interface IHyperpodTableQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
  /** Ask AWS now. */
  readonly refresh?: boolean;
}

/** A tag. */
export interface IHyperpodTag {
  readonly key: string;
  readonly value: string;
}

/** A file system of FSx for Lustre that an instance group mounts. */
export interface ILustreStorage {
  /** Name of its server. */
  readonly dns_name: string;
  /** What is mounted from there. */
  readonly mount_name: string;
  /** Where the instances mount it; null: at AWS' own choice. */
  readonly path: string | null;
}
