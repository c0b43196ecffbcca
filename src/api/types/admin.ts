/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError } from './base';

/** Which plan is confirmed. */
export interface IAdminApplyBody {
  /** The plan's `id`. */
  readonly plan: string;
}

/** What a plan was asked for; `mode` is null where all is taken back. */
export interface IAdminAsked {
  readonly region: string | null;
  readonly domain: string;
  readonly cluster: string | null;
  readonly file_system: string | null;
  readonly mode: 'shared' | 'per-user' | null;
  readonly shared_path: string;
  readonly profiles: readonly string[] | null;
  readonly take_over: boolean;
  readonly folders: IAdminFolders;
}

/** What can be chosen; `domain` is this space's, `folder_clusters` are those of the configuration. What AWS does not tell is left out, and noted. */
export interface IAdminChoices {
  readonly domain: string | null;
  readonly domains: readonly IAdminDomain[];
  readonly file_systems: readonly IAdminFileSystem[];
  readonly folder_clusters: readonly IAdminFolderCluster[];
  readonly notes: readonly string[];
}

/** How many steps are how: see `AdminStep`. */
export interface IAdminCounts {
  readonly as_wanted: number;
  readonly to_do: number;
  readonly waits: number;
  readonly blocked: number;
}

/** A domain of Studio: its id and its name. */
export interface IAdminDomain {
  readonly id: string;
  readonly name: string;
}

/** How many things of a kind there are, and how many of them are not as wanted. */
export interface IAdminDrift {
  readonly kind: string;
  readonly total: number;
  readonly differ: number;
}

/** Emitted when a plan for a Studio domain begins, is there, is applied or ends, and now and then on the way. Holds nothing of what it says. */
export interface IAdminEvent {
  readonly number: number;
  readonly version: number;
  readonly state:
    | 'planning'
    | 'planned'
    | 'checking'
    | 'applying'
    | 'stopping'
    | 'applied'
    | 'stopped'
    | 'failed';
}

/** A file system of FSx for Lustre. */
export interface IAdminFileSystem {
  /** Its id. */
  readonly id: string;
  /** What its tag `Name` says; null: it has none. */
  readonly name: string | null;
  /** AWS' word for its state. */
  readonly state: string;
  /** The HyperPod clusters whose instance groups mount it, as far as AWS knows. */
  readonly clusters: readonly string[];
}

/** What is to be said of the whole; one of level `error` keeps the plan from being applied. */
export interface IAdminFinding {
  readonly level: string;
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
}

/** A cluster of the configuration whose jobs can make folders. */
export interface IAdminFolderCluster {
  readonly name: string;
  readonly kind: 'slurm' | 'kubernetes';
}

/** What an admin says of who is to look after folders. */
export interface IAdminFolders {
  /** Who. */
  readonly by: 'here' | 'slurm' | 'kubernetes' | 'none';
  /** Where the whole file system is mounted: on this machine, or on the nodes. */
  readonly mounted_at: string | null;
  /** The cluster: its name in the configuration, or the HyperPod cluster behind it; null: the only one of its kind. */
  readonly cluster: string | null;
  /** The Slurm partition of the jobs. */
  readonly queue: string | null;
  /** The namespace of the claim; default: the cluster's of the configuration. */
  readonly namespace: string | null;
  /** The claim of the whole file system; default: the same. */
  readonly claim: string | null;
  /** The pods' image by its digest; default: the same. */
  readonly image: string | null;
  /** The user of the cluster's jobs, by number or name, `none` for nobody; null: who is let in already stays so. */
  readonly user: string | null;
}

/** Who looks at the folders of the file system and makes them, and what that one has to know. */
export interface IAdminFoldersBody {
  /** The server's machine, a job of a Slurm cluster, a Job of a Kubernetes cluster, or nobody. */
  readonly by: 'here' | 'slurm' | 'kubernetes' | 'none';
  /** Where the whole file system is mounted: on the server's machine, or on the nodes of Slurm (default there: /fsx). */
  readonly mounted_at?: string | null;
  /** The cluster by its name in the configuration; default: the only one of its kind. */
  readonly cluster?: string | null;
  /** The Slurm partition of the job. */
  readonly queue?: string | null;
  /** Where the claim is; default: the cluster's of the configuration. */
  readonly namespace?: string | null;
  /** The claim of the whole file system; default: the same. */
  readonly claim?: string | null;
  /** The pod's image, by its digest; default: the same. */
  readonly image?: string | null;
  /** The user of the cluster's jobs, by number or name, who is let into the folders. */
  readonly user?: string | null;
}

/** Which mode a domain is in, as far as its own settings and its first profiles tell; null: nothing was set from here. `shared_path` is the folder that all were given. */
export interface IAdminMode {
  readonly mode: 'shared' | 'per-user' | 'both' | null;
  readonly shared_path: string | null;
}

/** Of which domain and file system. */
export interface IAdminModeQuery {
  /** The domain's id. */
  readonly domain: string;
  /** The file system's id. */
  readonly file_system: string;
}

/** A plan without its steps. `id` confirms it; with `changed` it takes the place of one that was confirmed, of which nothing was done. `now` is the mode that was applied last, or `both`. */
export interface IAdminPlan {
  readonly id: string;
  readonly changed: boolean;
  readonly now: 'shared' | 'per-user' | 'both' | null;
  readonly file_system: string;
  readonly counts: IAdminCounts;
  readonly drift: readonly IAdminDrift[];
  readonly restarts: readonly IAdminRestart[];
  readonly findings: readonly IAdminFinding[];
  readonly statements: readonly IAdminStatement[];
}

/** What is to be there. */
export interface IAdminPlanBody {
  /** One folder for all, or one for each user profile; null: what was set is taken back. */
  readonly mode: 'shared' | 'per-user' | null;
  /** The domain's id; default: this space's. */
  readonly domain?: string | null;
  /** The HyperPod cluster whose file system it is. */
  readonly cluster?: string | null;
  /** The file system, in place of a cluster. */
  readonly file_system?: string | null;
  /** The domain's region; default: the one that AWS is asked in where nobody names one. */
  readonly region?: string | null;
  /** The folder that all have in mode `shared`. */
  readonly shared_path?: string;
  /** Only these user profiles, and nothing of the domain's own; default: all. */
  readonly profiles?: readonly string[] | null;
  /** Change also what somebody else has set. */
  readonly take_over?: boolean;
  /** Who looks at folders and makes them; default: nobody. Where all is taken back nobody has to. */
  readonly folders?: IAdminFoldersBody | null;
}

/** How far something is. */
export interface IAdminProgress {
  readonly done: number;
  readonly total: number;
}

/** What runs somewhere and sees the change only once it is started anew. */
export interface IAdminRestart {
  readonly target: string;
  readonly apps: readonly string[];
}

/** How many steps were done, failed, and are left. */
export interface IAdminResults {
  readonly done: number;
  readonly failed: number;
  readonly left: number;
}

/** Whether the Admin page is offered: AWS says that the server's role may change user profiles of the domain. Else `reason` says why not. */
export interface IAdminRightsAnswer {
  readonly offered: boolean;
  readonly domain: string | null;
  readonly reason: IError | null;
}

/** What a plan means for people, a sentence or two. */
export interface IAdminStatement {
  /** What it is about: where files are, what keeps others out of them, what has to be started anew, what profiles to come will have. */
  readonly topic: 'data' | 'isolation' | 'restarts' | 'new profiles';
  /** The sentences. */
  readonly text: string;
}

/** A step, and what became of it. */
export interface IAdminStep {
  /** Its number in the plan, from 1. */
  readonly key: string;
  /** What it is done to, such as `profile alice`. */
  readonly target: string;
  /** How it is. */
  readonly state:
    | 'to-do'
    | 'waits'
    | 'blocked'
    | 'as-wanted'
    | 'done'
    | 'failed'
    | 'not-begun';
  /** What was there. */
  readonly before: string;
  /** What is to be there. */
  readonly after: string;
  /** Why it waits, is blocked or failed. */
  readonly reason: string | null;
  /** What to do about a failure. */
  readonly hint: string | null;
  /** Applications that see it only once they are started anew. */
  readonly restarts: readonly string[];
}

/** A page of steps; while `loading` more of them get a result. */
export interface IAdminSteps {
  /** The cursor of the next page; null at the end. */
  readonly next: string | null;
  /** How many rows there are in all pages. */
  readonly total: number;
  readonly steps: readonly IAdminStep[];
  readonly loading: boolean;
}

/** The newest plan of this server, and what became of it. `number` is 0 before the first; `problem` says why it broke; `read` is how many profiles and spaces were looked at. */
export interface IAdminWork {
  readonly number: number;
  readonly version: number;
  readonly state:
    | 'none'
    | 'planning'
    | 'planned'
    | 'checking'
    | 'applying'
    | 'stopping'
    | 'applied'
    | 'stopped'
    | 'failed';
  readonly begun_at: string | null;
  readonly ended_at: string | null;
  readonly asked: IAdminAsked | null;
  readonly read: IAdminProgress;
  readonly plan: IAdminPlan | null;
  readonly results: IAdminResults;
  readonly problem: IError | null;
}

/** Which steps. */
export interface IStepsQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
  /** Only those that are so. */
  readonly state?:
    | 'to-do'
    | 'waits'
    | 'blocked'
    | 'as-wanted'
    | 'done'
    | 'failed'
    | 'not-begun'
    | null;
}
