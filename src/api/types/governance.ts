/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';
import { IQuota } from './clusters';

/** What a team has, or may borrow, of one instance type; null where AWS does not say it. `partitions` is the number of parts of GPUs of the kind `partition`. */
export interface IAllocation {
  readonly instance_type: string;
  readonly count: number | null;
  readonly accelerators: number | null;
  readonly cpus: number | null;
  readonly memory_gib: number | null;
  readonly partition: string | null;
  readonly partitions: number | null;
}

/** How waiting work is ordered and idle compute shared: `fair_share` and `idle_sharing` are AWS' words. */
export interface IClusterPolicy {
  readonly policy_id: string;
  readonly name: string;
  readonly state: string;
  readonly status: string;
  readonly fair_share: string | null;
  readonly idle_sharing: string | null;
  readonly priorities: readonly IPriorityClass[];
  readonly reason: string | null;
}

/** The task governance of a HyperPod cluster. */
export interface IHyperpodGovernance {
  readonly as_of: string | null;
  readonly problem: IError | null;
  readonly loading: boolean;
  readonly notes: readonly string[];
  readonly cluster: string;
  readonly quotas: readonly ITeamQuota[];
  readonly policies: readonly IClusterPolicy[];
}

/** How important work is: of a greater weight goes first. `label` is what its jobs are labelled with. */
export interface IPriorityClass {
  readonly name: string;
  readonly weight: number;
  readonly label: string;
}

/** What a team has of a cluster. `status`, `sharing` and `preemption` are AWS' words, `state` ours; `used` is what Kueue says of its cluster queue (null: not known). */
export interface ITeamQuota {
  readonly quota_id: string;
  readonly name: string;
  readonly team: string;
  readonly state: string;
  readonly status: string;
  readonly enabled: boolean;
  readonly weight: number | null;
  readonly allocated: readonly IAllocation[];
  readonly sharing: string | null;
  readonly borrow_percent: number | null;
  readonly borrow_most: readonly IAllocation[];
  readonly preemption: string | null;
  readonly reason: string | null;
  readonly namespace: string;
  readonly queue: string;
  readonly used: readonly IQuota[] | null;
  readonly running: number | null;
  readonly waiting: number | null;
}
