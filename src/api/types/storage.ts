/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

/** A file system of FSx for Lustre as AWS knows it. The capacity is in bytes; `associations` is null where they could not be had. */
export interface IAwsFileSystem {
  readonly name: string;
  readonly state: string;
  readonly mount_name: string | null;
  readonly dns_name: string | null;
  readonly deployment: string | null;
  readonly storage_type: string | null;
  readonly capacity: number | null;
  readonly throughput: string | null;
  readonly version: string | null;
  readonly maintenance: string | null;
  readonly root_squash: string | null;
  readonly problem: string | null;
  readonly associations: readonly IStorageLink[] | null;
}

/** What to do to files. */
export interface IFilesActionBody {
  /** Their paths below the server's root. */
  readonly paths: readonly string[];
  /** `hydrate` brings released ones back, `release` takes those off that are in S3, `export` copies them there. */
  readonly action: StorageAction;
  /** How; default: by Lustre's program, and by AWS what that may not do, or where it is missing. */
  readonly by?: StorageWay | null;
}

/** Files of the file browser. */
export interface IFilesBody {
  /** Their paths below the server's root. */
  readonly paths: readonly string[];
}

/** The link to make. */
export interface ILinkBody {
  /** What it is called, such as `hyperpod-partition`. */
  readonly name: string;
}

/** A file or folder of the file browser. */
export interface IPathsQuery {
  /** Its path below the server's root. */
  readonly path: string;
}

/** A task by which AWS exports, imports or releases files; `state` is AWS' word. Counts are null before it begins, times ISO 8601. */
export interface IRepositoryTask {
  readonly task_id: string;
  readonly file_system: string | null;
  readonly kind: string;
  readonly state: string;
  readonly paths: readonly string[];
  readonly created: string | null;
  readonly started: string | null;
  readonly ended: string | null;
  readonly total: number | null;
  readonly succeeded: number | null;
  readonly failed: number | null;
  readonly problem: string | null;
  readonly report: string | null;
}

/** Tasks, those asked for last first. */
export interface IRepositoryTasks {
  readonly tasks: readonly IRepositoryTask[];
}

export type StorageAction = 'hydrate' | 'release' | 'export';

/** What keeps others out of a folder: `none`, `mount_path_only`, `posix` or `real_identity`, why, and what others may do there by its rights. */
export interface IStorageIsolation {
  readonly level: string;
  readonly words: string;
  readonly evidence: readonly string[];
  readonly readers: readonly string[];
}

/** A link between a folder of a file system and a place in S3; `state` is AWS' word. */
export interface IStorageLink {
  readonly folder: string;
  readonly repository: string;
  readonly state: string | null;
  readonly imports: readonly string[];
  readonly exports: readonly string[];
  readonly problem: string | null;
}

/** The partition in the folder that the file browser shows: `path` is the link below the server's root; `made` is false when it was there already. */
export interface IStorageLinkMade {
  readonly path: string;
  readonly link: string;
  readonly partition: string;
  readonly made: boolean;
}

/** All storage of this machine. `separation` is null when it cannot be looked at. `notes` say what could not be had, and what is to be known. */
export interface IStorageOverview {
  readonly partition: IStoragePartition;
  readonly file_systems: readonly IStoragePlace[];
  readonly clusters: readonly IStorageSide[];
  readonly studio: boolean;
  readonly shared_space: boolean;
  readonly separation: IStorageSeparation | null;
  readonly notes: readonly string[];
}

/** The partition's root, or a folder above it. `problem` is `foreign`, `open` or `group` where another user than root and this one can exchange what lies in it, else null; `mode` is octal. */
export interface IStorageParent {
  readonly path: string;
  readonly uid: number;
  readonly mode: string;
  readonly problem: string | null;
}

/** The partition that runs go to. `shared` says whether they are for all its users, by the configuration; `folder` is ours on it, `index` the file with the index of runs. */
export interface IStoragePartition {
  readonly path: string;
  readonly exists: boolean;
  readonly mount: string;
  readonly kind: string | null;
  readonly source: string | null;
  readonly file_system: string | null;
  readonly mount_name: string | null;
  readonly mounted_folder: string | null;
  readonly path_there: string | null;
  readonly network: boolean;
  readonly read_only: boolean;
  readonly writable: boolean | null;
  readonly open_to_others: boolean | null;
  readonly runs_go_here: boolean;
  readonly private_of: string | null;
  readonly offered: boolean;
  readonly problem: string | null;
  readonly total: number | null;
  readonly free: number | null;
  readonly files_free: number | null;
  readonly isolation: IStorageIsolation | null;
  readonly aws: IAwsFileSystem | null;
  readonly chosen_by: string;
  readonly folder: string;
  readonly shared: boolean;
  readonly index: string | null;
}

/** A path on each side: `here` on the server's machine (`studio`: that is a space of Studio), and as each cluster sees it. */
export interface IStoragePaths {
  readonly here: string;
  readonly studio: boolean;
  readonly clusters: readonly IStorageSide[];
}

/** A file system that is mounted here, or a folder of one. Sizes are in bytes; what is not known is null. `mounted_folder` is the folder of a Lustre file system that is mounted (`/`: the whole), `path_there` the place's own path on it. A private partition (`private_of`) is not `offered` in a space that several people act as. */
export interface IStoragePlace {
  readonly path: string;
  readonly exists: boolean;
  readonly mount: string;
  readonly kind: string | null;
  readonly source: string | null;
  readonly file_system: string | null;
  readonly mount_name: string | null;
  readonly mounted_folder: string | null;
  readonly path_there: string | null;
  readonly network: boolean;
  readonly read_only: boolean;
  readonly writable: boolean | null;
  readonly open_to_others: boolean | null;
  readonly runs_go_here: boolean;
  readonly private_of: string | null;
  readonly offered: boolean;
  readonly problem: string | null;
  readonly total: number | null;
  readonly free: number | null;
  readonly files_free: number | null;
  readonly isolation: IStorageIsolation | null;
  readonly aws: IAwsFileSystem | null;
}

/** What of storage is looked at. */
export interface IStorageQuery {
  /** Whether AWS is asked what it knows of file systems that come from there. */
  readonly aws?: boolean;
}

/** Whether other users are kept from exchanging and writing this user's runs (`holds`), else why not and what to do about it. `old_runs` of this user's lie in the old layout. */
export interface IStorageSeparation {
  readonly parents: readonly IStorageParent[];
  readonly holds: boolean;
  readonly reason: string | null;
  readonly fix: string | null;
  readonly old_runs: number;
}

/** The partition as this machine and one cluster see it: `there` is null when that has none, `reason` says why. `side` is `here`, `Slurm node` or `pod`. */
export interface IStorageSide {
  readonly cluster: string;
  readonly orchestrator: string;
  readonly side: string;
  readonly here: string | null;
  readonly there: string | null;
  readonly reason: string | null;
}

export type StorageWay = 'lfs' | 'aws';

/** What is known of one file, or became of a request for it. `path` is as it was given. `done` is `seen`, `asked` (it goes on after the answer; by the task of AWS that `task` names, if any), `nothing` (it was so already) or `refused`, with the `reason`. `state` is null where it cannot be had; `progress` is how far what is under way is, in Lustre's words. */
export interface IStoredFile {
  readonly path: string;
  readonly done: string;
  readonly state: string | null;
  readonly progress: string | null;
  readonly reason: string | null;
  readonly hint: string | null;
  readonly task: string | null;
}

/** One entry for each file, in their order. */
export interface IStoredFiles {
  readonly files: readonly IStoredFile[];
}

/** A task's state in AWS' word, once it was asked to be cancelled. */
export interface ITaskState {
  readonly task: string;
  readonly state: string;
}
