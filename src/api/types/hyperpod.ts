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

/** A HyperPod cluster. `tags` is null where they could not be had; `log_group` is that of its life cycle scripts and health checks. */
export interface IHyperpodClusterAnswer {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly loading: boolean;
  readonly notes: readonly string[];
  readonly name: string;
  readonly arn: string;
  readonly region: string;
  readonly state: string;
  readonly status: string;
  readonly orchestrator: string | null;
  readonly eks_arn: string | null;
  readonly nodes: number | null;
  readonly target: number | null;
  readonly created_at: string | null;
  readonly image_status: string | null;
  readonly node_recovery: string | null;
  readonly provisioning: string | null;
  readonly configured_as: readonly string[];
  readonly mounted_here: readonly string[] | null;
  readonly reason: string | null;
  readonly reach: IHyperpodReach | null;
  readonly settings: readonly IHyperpodSetting[];
  readonly groups: readonly IHyperpodGroup[];
  readonly tags: readonly IHyperpodTag[] | null;
  readonly log_group: string;
  readonly links: IHyperpodLinks;
}

/** A HyperPod cluster in a table. `status` is AWS' word, `state` ours. `described_at` says when AWS was asked for what the list does not have (orchestrator, nodes); null while that is not known. `mounted_here` is where its file systems are mounted on the server's machine; null: AWS does not say which it has. `reach` is a word for whether one can submit to it from the server's machine (null: not known yet), `reach_reason` the same as a sentence, `reach_next` what to do. */
export interface IHyperpodClusterRow {
  readonly name: string;
  readonly arn: string;
  readonly region: string;
  readonly state: string;
  readonly status: string;
  readonly orchestrator: string | null;
  readonly nodes: number | null;
  readonly target: number | null;
  readonly created_at: string | null;
  readonly image_status: string | null;
  readonly configured_as: readonly string[];
  readonly mounted_here: readonly string[] | null;
  readonly described_at: string | null;
  readonly reason: string | null;
  readonly reach: string | null;
  readonly reach_reason: string | null;
  readonly reach_next: string | null;
}

/** A page of HyperPod clusters. */
export interface IHyperpodClusters {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly loading: boolean;
  readonly notes: readonly string[];
  readonly clusters: readonly IHyperpodClusterRow[];
  readonly next: string | null;
  readonly total: number;
}

/** An event of a HyperPod cluster. `level` is `info`, `warn` or `error`, `resource` is `cluster`, `group` or `instance`; a word of AWS' that is newer is there as it came. `times` says how often AWS told it within a moment. `reason` is known once its details were looked at. With `journal` AWS does not list it (any more), and it is from the server's own journal. */
export interface IHyperpodEvent {
  readonly event_id: string;
  readonly time: string;
  readonly level: string | null;
  readonly resource: string;
  readonly group: string | null;
  readonly instance: string | null;
  readonly description: string | null;
  readonly reason: string | null;
  readonly times: number;
  readonly journal: boolean;
}

/** An event with what its details have besides, as AWS tells it. */
export interface IHyperpodEventDetail {
  readonly event_id: string;
  readonly time: string;
  readonly level: string | null;
  readonly resource: string;
  readonly group: string | null;
  readonly instance: string | null;
  readonly description: string | null;
  readonly reason: string | null;
  readonly times: number;
  readonly journal: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A page of events. `groups` and `instances` are those of which there are events: the newest first, and no more than some. */
export interface IHyperpodEvents {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly loading: boolean;
  readonly notes: readonly string[];
  readonly events: readonly IHyperpodEvent[];
  readonly next: string | null;
  readonly total: number;
  readonly groups: readonly string[];
  readonly instances: readonly string[];
}

/** An instance group. `capacity` is `Spot` or `OnDemand`, `script` where its life cycle script lies, `checks` are the deep health checks at the start of an instance; null or empty where AWS does not say. */
export interface IHyperpodGroup {
  readonly name: string;
  readonly state: string | null;
  readonly status: string | null;
  readonly instance_type: string | null;
  readonly current: number;
  readonly target: number;
  readonly slurm_role: string | null;
  readonly capacity: string | null;
  readonly script: string | null;
  readonly role_arn: string | null;
  readonly checks: readonly string[];
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

/** A node of a HyperPod cluster as AWS and, where it is configured, the scheduler know it. `name` is the instance id, or the scheduler's name where AWS lists no instance (`state` is `not-listed` then). What is from the scheduler is null where it does not know the node, or was not asked. */
export interface IHyperpodNode {
  readonly name: string;
  readonly state: string;
  readonly status: string | null;
  readonly reason: string | null;
  readonly instance_group: string | null;
  readonly instance_type: string | null;
  readonly launched_at: string | null;
  readonly host: string | null;
  readonly image_version: string | null;
  readonly image_status: string | null;
  readonly node: string | null;
  readonly scheduler_state: string | null;
  readonly scheduler_reason: string | null;
  readonly accelerators: number | null;
  readonly accelerators_free: number | null;
  readonly jobs: readonly string[];
}

/** A page of nodes of a HyperPod cluster; `changing` while some of them, on whatever page, come or go: then they are looked at every 10 seconds. */
export interface IHyperpodNodes {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly loading: boolean;
  readonly notes: readonly string[];
  readonly nodes: readonly IHyperpodNode[];
  readonly changing: boolean;
  readonly next: string | null;
  readonly total: number;
}

/** How to look at a HyperPod cluster. */
export interface IHyperpodQuery {
  /** Ask AWS now. */
  readonly refresh?: boolean;
}

/** Whether one can submit to a cluster from the server's machine: a word, a sentence, what to do, and what to add to the configuration file, in TOML. */
export interface IHyperpodReach {
  readonly word: string;
  readonly sentence: string;
  readonly next_step: string | null;
  readonly config: string | null;
}

/** A setting of a cluster: a word for it (or AWS' name), its value, and what that means where it is known. */
export interface IHyperpodSetting {
  readonly name: string;
  readonly value: string;
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
