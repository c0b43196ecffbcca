import type { Schema } from '../api';

/** What a team has, or may borrow, of one instance type; what is null AWS does not say. */
export type IAllocation = Schema<'Allocation'>;

/** What a team has of a cluster. */
export type ITeamQuota = Schema<'TeamQuota'>;

/** How important work is: of a greater weight goes first. */
export type IPriorityClass = Schema<'PriorityClass'>;

/** How waiting work is ordered, and idle compute shared. */
export type IClusterPolicy = Schema<'ClusterPolicy'>;

/** The task governance of a cluster. */
export type IGovernance = Schema<'ClusterGovernance'>;
