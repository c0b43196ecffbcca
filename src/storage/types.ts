import {
  asText,
  listOf,
  numberOrNull,
  partOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import type * as wire from '../api/types';

/**
 * What keeps others out of a folder, and how that is known.
 */
export interface IIsolation {
  /** `none`, `mount_path_only`, `posix`, `real_identity`, or a newer word. */
  readonly level: string;
  readonly evidence: readonly string[];
  /** What others may do there by its rights. */
  readonly readers: readonly string[];
}

/**
 * A file system that is mounted on the server's machine, or a folder of one. Sizes are in bytes.
 */
export interface IPlace {
  readonly path: string;
  readonly kind: string | null;
  /** Its id at AWS. */
  readonly fileSystem: string | null;
  /** The folder of the file system that is mounted. */
  readonly mountedFolder: string | null;
  readonly isNetwork: boolean;
  readonly isReadOnly: boolean;
  readonly runsGoHere: boolean;
  readonly total: number | null;
  readonly free: number | null;
  readonly isolation: IIsolation | null;
  /** AWS' word for its state. */
  readonly awsState: string | null;
  readonly problem: string | null;
}

/**
 * The partition as this machine and a cluster see it.
 */
export interface ISide {
  readonly cluster: string;
  /** Where that is: `here`, `Slurm node`, `pod`, or a newer word. */
  readonly side: string;
  readonly here: string | null;
  readonly there: string | null;
  readonly reason: string | null;
}

/**
 * Whether other users are kept from exchanging and writing this user's runs.
 */
export interface ISeparation {
  readonly holds: boolean;
  /** Why it does not hold, in the server's words. */
  readonly reason: string | null;
  /** What to do about it. */
  readonly fix: string | null;
  /** How many of this user's runs lie in the old layout. */
  readonly oldRuns: number;
}

/**
 * All storage of the server's machine.
 */
export interface IStorage {
  readonly partition: IPlace;
  readonly fileSystems: readonly IPlace[];
  readonly sides: readonly ISide[];
  /** Null where that can't be known. */
  readonly separation: ISeparation | null;
  readonly notes: readonly string[];
}

/** Read an answer of `GET storage`. */
export function decodeStorage(value: unknown): IStorage {
  const from = recordOf<wire.IStorageOverview>(value, 'storage');
  const partition = partOrNull(from, 'partition', decodePlace);
  if (partition === null) {
    throw new Error('storage has no partition');
  }
  return {
    partition,
    fileSystems: listOf(from, 'file_systems', decodePlace),
    sides: listOf(from, 'clusters', decodeSide),
    separation: partOrNull(from, 'separation', decodeSeparation),
    notes: listOf(from, 'notes', asText)
  };
}

function decodeSeparation(value: unknown): ISeparation {
  const from = recordOf<wire.IStorageSeparation>(value, 'separation');
  return {
    holds: truthOf(from, 'holds'),
    reason: textOrNull(from, 'reason'),
    fix: textOrNull(from, 'fix'),
    oldRuns: numberOrNull(from, 'old_runs') ?? 0
  };
}

function decodePlace(value: unknown): IPlace {
  const from = recordOf<wire.IStoragePlace>(value, 'place');
  return {
    path: textOf(from, 'path'),
    kind: textOrNull(from, 'kind'),
    fileSystem: textOrNull(from, 'file_system'),
    mountedFolder: textOrNull(from, 'mounted_folder'),
    isNetwork: truthOf(from, 'network'),
    isReadOnly: truthOf(from, 'read_only'),
    runsGoHere: truthOf(from, 'runs_go_here'),
    total: numberOrNull(from, 'total'),
    free: numberOrNull(from, 'free'),
    isolation: partOrNull(from, 'isolation', decodeIsolation),
    awsState: partOrNull(from, 'aws', decodeState),
    problem: textOrNull(from, 'problem')
  };
}

function decodeIsolation(value: unknown): IIsolation {
  const from = recordOf<wire.IStorageIsolation>(value, 'isolation');
  return {
    level: textOf(from, 'level'),
    evidence: listOf(from, 'evidence', asText),
    readers: listOf(from, 'readers', asText)
  };
}

function decodeState(value: unknown): string {
  return textOf(recordOf<wire.IAwsFileSystem>(value, 'aws'), 'state');
}

/** Read the partition or a path as one cluster sees it. */
export function decodeSide(value: unknown): ISide {
  const from = recordOf<wire.IStorageSide>(value, 'side');
  return {
    cluster: textOf(from, 'cluster'),
    side: textOrNull(from, 'side') ?? '',
    here: textOrNull(from, 'here'),
    there: textOrNull(from, 'there'),
    reason: textOrNull(from, 'reason')
  };
}
