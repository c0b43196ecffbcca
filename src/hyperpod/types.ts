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
  truthOf,
  Wire
} from '../api';
import type * as wire from '../api/types';
import { decodeError, decodeRow, ITablePage } from '../clusters/types';

/**
 * Of when something is that AWS told.
 */
export interface IAged {
  /** The moment at which AWS was asked; null where it was not. */
  readonly asOf: string | null;
  /** Why there is nothing newer, or not all of it. */
  readonly problem: ApiError | null;
  /** Whether more is on its way. */
  readonly loading: boolean;
  /** What is to be said of it: a sentence each. */
  readonly notes: readonly string[];
}

/**
 * A HyperPod cluster in the list. What is null is not known, or not yet.
 */
export interface IHyperpodCluster {
  readonly name: string;
  readonly arn: string;
  readonly state: string;
  readonly orchestrator: string | null;
  readonly nodes: number | null;
  readonly target: number | null;
  readonly configuredAs: readonly string[];
  readonly describedAt: string | null;
  readonly reason: string | null;
  /** A word for whether one can submit to it from the server's machine; null while that is not known. */
  readonly reach: string | null;
  readonly reachReason: string | null;
}

/** Whether one can submit to a cluster from the server's machine. */
export interface IReach {
  readonly word: string;
  readonly sentence: string;
  /** What to do about it. */
  readonly nextStep: string | null;
  /** What to add to the configuration file, in TOML. */
  readonly config: string | null;
}

/** A setting of a cluster; its name is AWS' where this version does not know it. */
export interface ISetting {
  readonly name: string;
  readonly value: string;
  /** What it means, in English; null where that is not known. */
  readonly meaning: string | null;
}

/**
 * The first HyperPod clusters of the account.
 */
export interface IHyperpodList extends IAged {
  readonly clusters: readonly IHyperpodCluster[];
  readonly total: number;
}

/** An instance group; what is null AWS does not say. */
export interface IHyperpodGroup {
  readonly name: string;
  readonly state: string | null;
  readonly instanceType: string | null;
  readonly current: number;
  readonly target: number;
  readonly slurmRole: string | null;
  readonly capacity: string | null;
  readonly script: string | null;
  readonly checks: readonly string[];
}

/** A place in AWS' web console. */
export type LinkKind = 'cluster' | 'logs' | 'eks';

/**
 * A HyperPod cluster with all that its description tells.
 */
export interface IHyperpodDetail extends IAged {
  readonly name: string;
  readonly arn: string;
  readonly region: string;
  readonly state: string;
  readonly orchestrator: string | null;
  readonly nodes: number | null;
  readonly target: number | null;
  readonly createdAt: string | null;
  readonly imageStatus: string | null;
  readonly nodeRecovery: string | null;
  readonly provisioning: string | null;
  readonly configuredAs: readonly string[];
  readonly mountedHere: readonly string[] | null;
  readonly reason: string | null;
  readonly reach: IReach | null;
  readonly settings: readonly ISetting[];
  readonly groups: readonly IHyperpodGroup[];
  /** Null where they could not be had. */
  readonly tags:
    readonly { readonly key: string; readonly value: string }[] | null;
  readonly logGroup: string;
  readonly links: Readonly<Record<LinkKind, string | null>>;
}

/** What all answers on AWS' knowledge have. */
export type IAgedWire = Pick<
  wire.IHyperpodClusters,
  'as_of' | 'problem' | 'loading' | 'notes'
>;

/** The part of an answer that tells of when it is. */
export function agedOf(from: Wire<IAgedWire>): IAged {
  const problem: unknown = from.problem ?? null;
  return {
    asOf: textOrNull(from, 'as_of'),
    problem: problem === null ? null : decodeError(problem),
    loading: truthOf(from, 'loading'),
    notes: listOf(from, 'notes', asText)
  };
}

/** The list of clusters from an answer. */
export function decodeList(value: unknown): IHyperpodList {
  const from = recordOf<wire.IHyperpodClusters>(value, 'clusters');
  return {
    ...agedOf(from),
    clusters: listOf(from, 'clusters', decodeCluster),
    total: numberOf(from, 'total')
  };
}

function decodeCluster(value: unknown): IHyperpodCluster {
  const from = recordOf<wire.IHyperpodClusterRow>(value, 'cluster');
  return {
    name: textOf(from, 'name'),
    arn: textOf(from, 'arn'),
    state: textOf(from, 'state'),
    orchestrator: textOrNull(from, 'orchestrator'),
    nodes: numberOrNull(from, 'nodes'),
    target: numberOrNull(from, 'target'),
    configuredAs: listOf(from, 'configured_as', asText),
    describedAt: textOrNull(from, 'described_at'),
    reason: textOrNull(from, 'reason'),
    reach: textOrNull(from, 'reach'),
    reachReason: textOrNull(from, 'reach_reason')
  };
}

/** A cluster with its description from an answer. */
export function decodeDetail(value: unknown): IHyperpodDetail {
  const from = recordOf<wire.IHyperpodClusterAnswer>(value, 'cluster');
  const links = recordOf<wire.IHyperpodLinks>(from.links, 'links');
  const tags: unknown = from.tags ?? null;
  const mounted: unknown = from.mounted_here ?? null;
  return {
    ...agedOf(from),
    name: textOf(from, 'name'),
    arn: textOf(from, 'arn'),
    region: textOf(from, 'region'),
    state: textOf(from, 'state'),
    orchestrator: textOrNull(from, 'orchestrator'),
    nodes: numberOrNull(from, 'nodes'),
    target: numberOrNull(from, 'target'),
    createdAt: textOrNull(from, 'created_at'),
    imageStatus: textOrNull(from, 'image_status'),
    nodeRecovery: textOrNull(from, 'node_recovery'),
    provisioning: textOrNull(from, 'provisioning'),
    configuredAs: listOf(from, 'configured_as', asText),
    mountedHere: mounted === null ? null : listOf(from, 'mounted_here', asText),
    reason: textOrNull(from, 'reason'),
    reach: partOrNull(from, 'reach', decodeReach),
    settings: listOf(from, 'settings', decodeSetting),
    groups: listOf(from, 'groups', decodeGroup),
    tags: tags === null ? null : listOf(from, 'tags', decodeTag),
    logGroup: textOf(from, 'log_group'),
    links: {
      cluster: textOrNull(links, 'cluster'),
      logs: textOrNull(links, 'logs'),
      eks: textOrNull(links, 'eks')
    }
  };
}

function decodeGroup(value: unknown): IHyperpodGroup {
  const from = recordOf<wire.IHyperpodGroup>(value, 'group');
  return {
    name: textOf(from, 'name'),
    state: textOrNull(from, 'state'),
    instanceType: textOrNull(from, 'instance_type'),
    current: numberOf(from, 'current'),
    target: numberOf(from, 'target'),
    slurmRole: textOrNull(from, 'slurm_role'),
    capacity: textOrNull(from, 'capacity'),
    script: textOrNull(from, 'script'),
    checks: listOf(from, 'checks', asText)
  };
}

function decodeReach(value: unknown): IReach {
  const from = recordOf<wire.IHyperpodReach>(value, 'reach');
  return {
    word: textOf(from, 'word'),
    sentence: textOf(from, 'sentence'),
    nextStep: textOrNull(from, 'next_step'),
    config: textOrNull(from, 'config')
  };
}

function decodeSetting(value: unknown): ISetting {
  const from = recordOf<wire.IHyperpodSetting>(value, 'setting');
  return {
    name: textOf(from, 'name'),
    value: textOf(from, 'value'),
    meaning: textOrNull(from, 'meaning')
  };
}

function decodeTag(value: unknown): { key: string; value: string } {
  const from = recordOf<wire.IHyperpodTag>(value, 'tag');
  return { key: textOf(from, 'key'), value: textOf(from, 'value') };
}

/** A part of the table of nodes from an answer. */
export function decodeNodes(value: unknown): ITablePage {
  const from = recordOf<wire.IHyperpodNodes>(value, 'nodes');
  return {
    ...agedOf(from),
    changing: truthOf(from, 'changing'),
    rows: listOf(from, 'nodes', decodeRow),
    next: textOrNull(from, 'next'),
    total: numberOrNull(from, 'total')
  };
}
