/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';
import { IQuota } from './clusters';

/** What a team has of one instance type; null where AWS does not say it. */
export interface IAllocation {
  /** The type. */
  readonly instance_type: string;
  /** Whole instances. */
  readonly count: number | null;
  /** GPUs or the like. */
  readonly accelerators: number | null;
  /** Virtual CPUs. */
  readonly cpus: number | null;
  /** Memory in GiB. */
  readonly memory_gib: number | null;
  /** Kind of the parts of GPUs that are counted, such as `mig-1g.10gb`. */
  readonly partition: string | null;
  /** How many of them. */
  readonly partitions: number | null;
}

/** How waiting work of a cluster is ordered, and idle compute shared. */
export interface IClusterPolicy {
  /** Its id. */
  readonly policy_id: string;
  /** Its name. */
  readonly name: string;
  /** AWS' word for its state. */
  readonly status: string;
  /** `Enabled`: idle compute is shared by the teams' weights; `Disabled`: who comes first has it. */
  readonly fair_share: string | null;
  /** `Enabled`: what is no team's own can be borrowed too. */
  readonly idle_sharing: string | null;
  /** The priority classes, the most important first. */
  readonly priorities: readonly IPriorityClass[];
  /** Why it failed, or why it could not be described. */
  readonly reason: string | null;
  readonly state: string;
}

/** The task governance of a HyperPod cluster. */
export interface IHyperpodGovernance {
  readonly cluster: string;
  readonly quotas: readonly ITeamQuota[];
  readonly policies: readonly IClusterPolicy[];
  /** What there is to say of it. */
  readonly notes: readonly string[];
  /** When AWS was asked; null: it was not. */
  readonly as_of: string | null;
  /** Why there is nothing newer or not all. */
  readonly problem: IError | null;
  /** Whether more is on its way. */
  readonly loading: boolean;
}

/** How important work is: of a greater weight goes first. */
export interface IPriorityClass {
  readonly name: string;
  readonly weight: number;
  readonly label: string;
}

/** What a team has of a cluster. */
export interface ITeamQuota {
  /** Its id. */
  readonly quota_id: string;
  /** Its name. */
  readonly name: string;
  /** The team. */
  readonly team: string;
  /** AWS' word for its state. */
  readonly status: string;
  /** Whether it counts. */
  readonly enabled: boolean;
  /** The team's weight when idle compute is shared, from 0 to 100. */
  readonly weight: number | null;
  /** What is the team's own. */
  readonly allocated: readonly IAllocation[];
  /** `Lend`, `DontLend` or `LendAndBorrow`, or a newer word of AWS. */
  readonly sharing: string | null;
  /** How much idle compute the team may borrow, in percent of its own. */
  readonly borrow_percent: number | null;
  /** The most that it may borrow by instance type, where that is said. */
  readonly borrow_most: readonly IAllocation[];
  /** `LowerPriority` or `Never`: whether work of the team ends less important work of its own. */
  readonly preemption: string | null;
  /** Why it failed. */
  readonly reason: string | null;
  /** What Kueue says is in use of it; null where nobody was asked. */
  readonly used: readonly IQuota[] | null;
  /** How many of the team's workloads are admitted. */
  readonly running: number | null;
  /** How many wait. */
  readonly waiting: number | null;
  readonly state: string;
  readonly namespace: string;
  readonly queue: string;
}
