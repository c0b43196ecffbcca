import {
  listOf,
  numberOf,
  numberOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';
import { decodeQuota, IQuota } from '../clusters/types';
import { agedOf, IAged } from './types';

/** What a team has, or may borrow, of one instance type; what is null AWS does not say. */
export interface IAllocation {
  readonly instanceType: string;
  readonly count: number | null;
  readonly accelerators: number | null;
  readonly cpus: number | null;
  readonly memoryGib: number | null;
  readonly partition: string | null;
  readonly partitions: number | null;
}

/** What a team has of a cluster. */
export interface ITeamQuota {
  readonly id: string;
  readonly team: string;
  readonly namespace: string;
  readonly state: string;
  readonly weight: number | null;
  readonly allocated: readonly IAllocation[];
  readonly sharing: string | null;
  readonly borrowPercent: number | null;
  readonly borrowMost: readonly IAllocation[];
  readonly preemption: string | null;
  readonly reason: string | null;
  /** What Kueue says is in use; null where that is not known. */
  readonly used: readonly IQuota[] | null;
  readonly running: number | null;
  readonly waiting: number | null;
}

/** How important work is: of a greater weight goes first. */
export interface IPriorityClass {
  readonly name: string;
  readonly weight: number;
  readonly label: string;
}

/** How waiting work is ordered, and idle compute shared. */
export interface IClusterPolicy {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly fairShare: string | null;
  readonly idleSharing: string | null;
  readonly priorities: readonly IPriorityClass[];
  readonly reason: string | null;
}

/** The task governance of a cluster. */
export interface IGovernance extends IAged {
  readonly quotas: readonly ITeamQuota[];
  readonly policies: readonly IClusterPolicy[];
}

/** The task governance of a cluster from an answer. */
export function decodeGovernance(value: unknown): IGovernance {
  const from = recordOf<wire.IHyperpodGovernance>(value, 'governance');
  return {
    ...agedOf(from),
    quotas: listOf(from, 'quotas', decodeTeamQuota),
    policies: listOf(from, 'policies', decodePolicy)
  };
}

function decodeTeamQuota(value: unknown): ITeamQuota {
  const from = recordOf<wire.ITeamQuota>(value, 'quota');
  const used: unknown = from.used ?? null;
  return {
    id: textOf(from, 'quota_id'),
    team: textOf(from, 'team'),
    namespace: textOf(from, 'namespace'),
    state: textOf(from, 'state'),
    weight: numberOrNull(from, 'weight'),
    allocated: listOf(from, 'allocated', decodeAllocation),
    sharing: textOrNull(from, 'sharing'),
    borrowPercent: numberOrNull(from, 'borrow_percent'),
    borrowMost: listOf(from, 'borrow_most', decodeAllocation),
    preemption: textOrNull(from, 'preemption'),
    reason: textOrNull(from, 'reason'),
    used: used === null ? null : listOf(from, 'used', decodeQuota),
    running: numberOrNull(from, 'running'),
    waiting: numberOrNull(from, 'waiting')
  };
}

function decodeAllocation(value: unknown): IAllocation {
  const from = recordOf<wire.IAllocation>(value, 'allocation');
  return {
    instanceType: textOf(from, 'instance_type'),
    count: numberOrNull(from, 'count'),
    accelerators: numberOrNull(from, 'accelerators'),
    cpus: numberOrNull(from, 'cpus'),
    memoryGib: numberOrNull(from, 'memory_gib'),
    partition: textOrNull(from, 'partition'),
    partitions: numberOrNull(from, 'partitions')
  };
}

function decodePolicy(value: unknown): IClusterPolicy {
  const from = recordOf<wire.IClusterPolicy>(value, 'policy');
  return {
    id: textOf(from, 'policy_id'),
    name: textOf(from, 'name'),
    state: textOf(from, 'state'),
    fairShare: textOrNull(from, 'fair_share'),
    idleSharing: textOrNull(from, 'idle_sharing'),
    priorities: listOf(from, 'priorities', decodePriority),
    reason: textOrNull(from, 'reason')
  };
}

function decodePriority(value: unknown): IPriorityClass {
  const from = recordOf<wire.IPriorityClass>(value, 'priority class');
  return {
    name: textOf(from, 'name'),
    weight: numberOf(from, 'weight'),
    label: textOf(from, 'label')
  };
}
