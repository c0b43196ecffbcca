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
 * All storage of the server's machine.
 */
export interface IStorage {
  readonly partition: IPlace;
  readonly fileSystems: readonly IPlace[];
  readonly sides: readonly ISide[];
  readonly notes: readonly string[];
}

/**
 * The partition in the folder that the file browser shows.
 */
export interface ILinkMade {
  /** The link below the server's root. */
  readonly path: string;
  readonly partition: string;
  /** Whether it was not there before. */
  readonly isNew: boolean;
}

/**
 * A path on each side.
 */
export interface IPaths {
  readonly here: string;
  /** Whether the server's machine is a space of Studio. */
  readonly isStudio: boolean;
  readonly sides: readonly ISide[];
}

/**
 * What is known of a file's bytes, or became of a request for them.
 */
export interface IStoredFile {
  readonly path: string;
  /** `seen`, `asked`, `nothing`, `refused`, or a newer word. */
  readonly done: string;
  /** `local`, `released` and so on; null where it cannot be had. */
  readonly state: string | null;
  readonly progress: string | null;
  readonly reason: string | null;
  readonly hint: string | null;
  /** The task of AWS that does it. */
  readonly task: string | null;
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
    notes: listOf(from, 'notes', asText)
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

function decodeSide(value: unknown): ISide {
  const from = recordOf<wire.IStorageSide>(value, 'side');
  return {
    cluster: textOf(from, 'cluster'),
    side: textOrNull(from, 'side') ?? '',
    here: textOrNull(from, 'here'),
    there: textOrNull(from, 'there'),
    reason: textOrNull(from, 'reason')
  };
}

/** Read an answer of `POST storage/link`. */
export function decodeLink(value: unknown): ILinkMade {
  const from = recordOf<wire.IStorageLinkMade>(value, 'link');
  return {
    path: textOf(from, 'path'),
    partition: textOf(from, 'partition'),
    isNew: truthOf(from, 'made')
  };
}

/** Read an answer of `GET storage/paths`. */
export function decodePaths(value: unknown): IPaths {
  const from = recordOf<wire.IStoragePaths>(value, 'paths');
  return {
    here: textOf(from, 'here'),
    isStudio: truthOf(from, 'studio'),
    sides: listOf(from, 'clusters', decodeSide)
  };
}

/** Read an answer of `POST storage/files/states` or `actions`. */
export function decodeStoredFiles(value: unknown): readonly IStoredFile[] {
  const from = recordOf<wire.IStoredFiles>(value, 'files');
  return listOf(from, 'files', decodeStoredFile);
}

function decodeStoredFile(value: unknown): IStoredFile {
  const from = recordOf<wire.IStoredFile>(value, 'file');
  return {
    path: textOf(from, 'path'),
    done: textOf(from, 'done'),
    state: textOrNull(from, 'state'),
    progress: textOrNull(from, 'progress'),
    reason: textOrNull(from, 'reason'),
    hint: textOrNull(from, 'hint'),
    task: textOrNull(from, 'task')
  };
}
