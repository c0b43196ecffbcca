import {
  ApiError,
  asText,
  listOf,
  numberOf,
  numberOrNull,
  partOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import type * as wire from '../api/types';
import {
  decodeError,
  decodeRow,
  ITablePage,
  ITableQuery
} from '../clusters/types';
import { decodeFolders, IFolderCluster, IFolderPlace } from './folders';

/** One folder for all, or one for each user profile. */
export type Mode = 'shared' | 'per-user';

/** Whether the page is offered, and why not. */
export interface IRights {
  readonly offered: boolean;
  readonly reason: ApiError | null;
}

/** What can be chosen. */
export interface IChoices {
  /** This space's. */
  readonly domain: string | null;
  readonly domains: readonly { readonly id: string; readonly name: string }[];
  readonly fileSystems: readonly IFileSystem[];
  readonly folderClusters: readonly IFolderCluster[];
  /** What AWS does not tell: a sentence each. */
  readonly notes: readonly string[];
}

/** A file system of FSx for Lustre, and the clusters that mount it. */
export interface IFileSystem {
  readonly id: string;
  readonly name: string | null;
  readonly state: string;
  readonly clusters: readonly string[];
}

/** Which mode a domain is in, as far as a quick look tells. */
export interface IThere {
  /** `both`: some of it so, and some so; null: nothing was set up from here. */
  readonly mode: Mode | 'both' | null;
  /** The folder that all were given. */
  readonly sharedPath: string | null;
}

/** What a plan is asked for. */
export interface IAsked {
  readonly domain: string;
  readonly fileSystem: string | null;
  readonly cluster: string | null;
  /** Null: what was set is taken back. */
  readonly mode: Mode | null;
  readonly sharedPath: string;
  /** Only these user profiles; null: all. */
  readonly profiles: readonly string[] | null;
  /** Change also what somebody else has set. */
  readonly takeOver: boolean;
  /** Who looks at folders and makes them. */
  readonly folders: IFolderPlace;
}

/** How many steps are how. */
export interface ICounts {
  readonly asWanted: number;
  readonly toDo: number;
  readonly waits: number;
  readonly blocked: number;
}

/** How many things of a kind there are, and how many are not as wanted. */
export interface IDrift {
  readonly kind: string;
  readonly total: number;
  readonly differ: number;
}

/** Something to be said of the whole; one of level `error` keeps the plan from being applied. */
export interface IAdminFinding {
  readonly level: string;
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
}

/** A plan without its steps. */
export interface IPlan {
  /** Confirms it. */
  readonly id: string;
  /** It takes the place of one that was confirmed, of which nothing was done. */
  readonly changed: boolean;
  /** The mode that was applied last, or `both`; null: none. */
  readonly now: string | null;
  readonly fileSystem: string;
  readonly counts: ICounts;
  readonly drift: readonly IDrift[];
  /** What sees the change only once it is started anew. */
  readonly restarts: readonly {
    readonly target: string;
    readonly apps: readonly string[];
  }[];
  readonly findings: readonly IAdminFinding[];
  /** What it means. */
  readonly statements: readonly {
    readonly topic: string;
    readonly text: string;
  }[];
}

/** The newest plan of the server, and what became of it. */
export interface IWork {
  /** 0 before the first one. */
  readonly number: number;
  readonly version: number;
  /** `none`, `planning`, `planned`, `checking`, `applying`, `stopping`, `applied`, `stopped` or `failed`. */
  readonly state: string;
  readonly begunAt: string | null;
  readonly endedAt: string | null;
  readonly asked: IAsked | null;
  /** How many profiles and spaces were looked at. */
  readonly read: IProgress;
  readonly plan: IPlan | null;
  readonly results: {
    readonly done: number;
    readonly failed: number;
    readonly left: number;
  };
  /** Why it broke. */
  readonly problem: ApiError | null;
}

/** Whether a plan is made, applied, or waits to be confirmed. */
export function isOpen(work: IWork | null): boolean {
  const open = ['planning', 'planned', 'checking', 'applying', 'stopping'];
  return open.includes(work?.state ?? 'none');
}

export interface IProgress {
  readonly done: number;
  readonly total: number;
}

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

export function decodeRights(value: unknown): IRights {
  const from = recordOf<wire.IAdminRightsAnswer>(value, 'rights');
  return {
    offered: truthOf(from, 'offered'),
    reason: partOrNull(from, 'reason', decodeError)
  };
}

export function decodeChoices(value: unknown): IChoices {
  const from = recordOf<wire.IAdminChoices>(value, 'choices');
  return {
    domain: textOrNull(from, 'domain'),
    domains: listOf(from, 'domains', item => {
      const one = recordOf<wire.IAdminDomain>(item, 'domain');
      return { id: textOf(one, 'id'), name: textOf(one, 'name') };
    }),
    fileSystems: listOf(from, 'file_systems', decodeFileSystem),
    folderClusters: listOf(from, 'folder_clusters', item => {
      const one = recordOf<wire.IAdminFolderCluster>(item, 'cluster');
      return { name: textOf(one, 'name'), kind: textOf(one, 'kind') };
    }),
    notes: listOf(from, 'notes', asText)
  };
}

export function decodeThere(value: unknown): IThere {
  const from = recordOf<wire.IAdminMode>(value, 'mode');
  const mode = textOrNull(from, 'mode');
  return {
    mode: mode === 'both' ? mode : modeOf(mode),
    sharedPath: textOrNull(from, 'shared_path')
  };
}

function modeOf(text: string | null): Mode | null {
  return text === 'shared' || text === 'per-user' ? text : null;
}

function decodeFileSystem(value: unknown): IFileSystem {
  const from = recordOf<wire.IAdminFileSystem>(value, 'file system');
  return {
    id: textOf(from, 'id'),
    name: textOrNull(from, 'name'),
    state: textOf(from, 'state'),
    clusters: listOf(from, 'clusters', asText)
  };
}

export function decodeWork(value: unknown): IWork {
  const from = recordOf<wire.IAdminWork>(value, 'work');
  const results = recordOf<wire.IAdminResults>(from.results, 'results');
  return {
    number: numberOf(from, 'number'),
    version: numberOf(from, 'version'),
    state: textOf(from, 'state'),
    begunAt: textOrNull(from, 'begun_at'),
    endedAt: textOrNull(from, 'ended_at'),
    asked: partOrNull(from, 'asked', decodeAsked),
    read: decodeProgress(from.read),
    plan: partOrNull(from, 'plan', decodePlan),
    results: {
      done: numberOf(results, 'done'),
      failed: numberOf(results, 'failed'),
      left: numberOf(results, 'left')
    },
    problem: partOrNull(from, 'problem', decodeError)
  };
}

function decodeProgress(value: unknown): IProgress {
  const from = recordOf<wire.IAdminProgress>(value, 'progress');
  return { done: numberOf(from, 'done'), total: numberOf(from, 'total') };
}

function decodeAsked(value: unknown): IAsked {
  const from = recordOf<wire.IAdminAsked>(value, 'asked');
  const profiles: unknown = from.profiles;
  return {
    domain: textOf(from, 'domain'),
    fileSystem: textOrNull(from, 'file_system'),
    cluster: textOrNull(from, 'cluster'),
    mode: modeOf(textOrNull(from, 'mode')),
    sharedPath: textOf(from, 'shared_path'),
    profiles: Array.isArray(profiles) ? profiles.map(asText) : null,
    takeOver: truthOf(from, 'take_over'),
    folders: decodeFolders(from.folders)
  };
}

function decodePlan(value: unknown): IPlan {
  const from = recordOf<wire.IAdminPlan>(value, 'plan');
  return {
    id: textOf(from, 'id'),
    changed: truthOf(from, 'changed'),
    now: textOrNull(from, 'now'),
    fileSystem: textOf(from, 'file_system'),
    counts: decodeCounts(from.counts),
    drift: listOf(from, 'drift', item => {
      const one = recordOf<wire.IAdminDrift>(item, 'drift');
      return {
        kind: textOf(one, 'kind'),
        total: numberOf(one, 'total'),
        differ: numberOf(one, 'differ')
      };
    }),
    restarts: listOf(from, 'restarts', item => {
      const one = recordOf<wire.IAdminRestart>(item, 'restart');
      return {
        target: textOf(one, 'target'),
        apps: listOf(one, 'apps', asText)
      };
    }),
    findings: listOf(from, 'findings', decodeFinding),
    statements: listOf(from, 'statements', item => {
      const one = recordOf<wire.IAdminStatement>(item, 'statement');
      return { topic: textOf(one, 'topic'), text: textOf(one, 'text') };
    })
  };
}

function decodeCounts(value: unknown): ICounts {
  const from = recordOf<wire.IAdminCounts>(value, 'counts');
  return {
    asWanted: numberOf(from, 'as_wanted'),
    toDo: numberOf(from, 'to_do'),
    waits: numberOf(from, 'waits'),
    blocked: numberOf(from, 'blocked')
  };
}

function decodeFinding(value: unknown): IAdminFinding {
  const from = recordOf<wire.IAdminFinding>(value, 'finding');
  return {
    level: textOf(from, 'level'),
    code: textOf(from, 'code'),
    message: textOf(from, 'message'),
    hint: textOrNull(from, 'hint')
  };
}

/** A part of the table of steps from an answer. */
export function decodeSteps(value: unknown): ITablePage {
  const from = recordOf<wire.IAdminSteps>(value, 'steps');
  return {
    rows: listOf(from, 'steps', decodeRow),
    next: textOrNull(from, 'next'),
    total: numberOrNull(from, 'total'),
    loading: truthOf(from, 'loading')
  };
}
