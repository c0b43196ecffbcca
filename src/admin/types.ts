import type { Schema } from '../api';
import { ITableQuery } from '../clusters/types';

/** Whether the page is offered, and why not. */
export type IRights = Schema<'AdminRightsAnswer'>;

/** What can be chosen; `domain` is this space's. */
export type IChoices = Schema<'AdminChoices'>;

/** A file system of FSx for Lustre, and the clusters that mount it. */
export type IFileSystem = Schema<'AdminFileSystem'>;

/** Which mode a domain is in, as far as a quick look tells; null: nothing was set up from here. */
export type IThere = Schema<'AdminMode'>;

/** What a plan is asked for; without a mode what was set is taken back. */
export type IAsked = Omit<Schema<'AdminAsked'>, 'region'>;

/** One folder for all, or one for each user profile. */
export type Mode = NonNullable<IAsked['mode']>;

/** How many steps are how. */
export type ICounts = Schema<'AdminCounts'>;

/** How many things of a kind there are, and how many are not as wanted. */
export type IDrift = Schema<'AdminDrift'>;

/** Something to be said of the whole; one of level `error` keeps the plan from being applied. */
export type IAdminFinding = Schema<'AdminFinding'>;

/** Who mounts what of a file system, and so which mode is in force. */
export type IMounts = Schema<'AdminMounts'>;

/** User profiles that mount alike. */
export type IMountGroup = IMounts['groups'][number];

/** A plan without its steps; its id confirms it. */
export type IPlan = Schema<'AdminPlan'>;

/** The newest plan of the server, and what became of it. */
export type IWork = Schema<'AdminWork'>;

/** Whether a plan is made, applied, or waits to be confirmed. */
export function isOpen(work: IWork | null): boolean {
  const open = ['planning', 'planned', 'checking', 'applying', 'stopping'];
  return open.includes(work?.state ?? 'none');
}

export type IProgress = Schema<'AdminProgress'>;

/** How steps can be. */
export const STEP_STATES = [
  'to-do',
  'waits',
  'blocked',
  'as-wanted',
  'done',
  'failed',
  'not-begun'
] as const;
export type StepState = (typeof STEP_STATES)[number];

/** Which steps are wanted. */
export interface IStepsQuery extends ITableQuery {
  readonly state?: StepState;
}
