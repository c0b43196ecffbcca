/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

/** A file system. */
export interface IAwsFileSystem {
  /** Its id. */
  readonly name: string;
  /** AWS' word for its state, such as `AVAILABLE`. */
  readonly state: string;
  /** Its mount name. */
  readonly mount_name: string | null;
  /** Name of its server. */
  readonly dns_name: string | null;
  /** Its type, such as `PERSISTENT_2`. */
  readonly deployment: string | null;
  /** `SSD`, `HDD` or `INTELLIGENT_TIERING`. */
  readonly storage_type: string | null;
  /** Bytes. */
  readonly capacity: number | null;
  /** Its provisioned throughput in words; null where its type has a fixed one. */
  readonly throughput: string | null;
  /** Version of Lustre. */
  readonly version: string | null;
  /** When it is maintained, such as `Monday 05:00 UTC`. */
  readonly maintenance: string | null;
  /** As whom root of a client is taken, `UID:GID`; null: as root. */
  readonly root_squash: string | null;
  /** Why it does not work. */
  readonly problem: string | null;
  /** Its links to S3; null where they could not be had. */
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

/** A task. What AWS does not say is null. */
export interface IRepositoryTask {
  /** Its id. */
  readonly task_id: string;
  /** The file system's id. */
  readonly file_system: string | null;
  /** What it does, a `TaskVerb`, or AWS' word where that is another. */
  readonly kind: string;
  /** AWS' word: `PENDING`, `EXECUTING`, `SUCCEEDED`, `FAILED`, `CANCELING` or `CANCELED`. */
  readonly state: string;
  /** What it is done to, relative to the file system's root; places in S3 for an import. null at all: to everything. */
  readonly paths: readonly string[];
  /** When it was asked for. */
  readonly created: string | null;
  /** When it began. */
  readonly started: string | null;
  /** When it ended. */
  readonly ended: string | null;
  /** Files that it has to do with. */
  readonly total: number | null;
  /** Those that it has done. */
  readonly succeeded: number | null;
  /** Those that it could not do. */
  readonly failed: number | null;
  /** Why it failed. */
  readonly problem: string | null;
  /** Where in S3 its report lies; null without one. */
  readonly report: string | null;
}

/** Tasks, those asked for last first. */
export interface IRepositoryTasks {
  readonly tasks: readonly IRepositoryTask[];
}

export type StorageAction = 'hydrate' | 'release' | 'export';

/** What keeps others out of a folder. */
export interface IStorageIsolation {
  /** How strong it is. */
  readonly level: 'none' | 'mount_path_only' | 'posix' | 'real_identity';
  /** Why, a sentence each. */
  readonly evidence: readonly string[];
  /** Who else may do what there by its rights, in words. Others may get there too where the level is a weak one. */
  readonly readers: readonly string[];
  readonly words: string;
}

/** A link between a folder of a file system and a place in S3. */
export interface IStorageLink {
  /** The folder, such as `/data`. */
  readonly folder: string;
  /** The place, such as `s3://bucket/prefix`. */
  readonly repository: string;
  /** AWS' word for its state. */
  readonly state: string | null;
  /** What comes from S3 by itself: `NEW`, `CHANGED`, `DELETED`. */
  readonly imports: readonly string[];
  /** What goes to S3 by itself. */
  readonly exports: readonly string[];
  /** Why it does not work. */
  readonly problem: string | null;
}

/** The partition in the folder that the file browser shows: `path` is the link below the server's root; `made` is false when it was there already. */
export interface IStorageLinkMade {
  readonly path: string;
  readonly link: string;
  readonly partition: string;
  readonly made: boolean;
}

/** All storage here. */
export interface IStorageOverview {
  /** The partition that runs go to. */
  readonly partition: IStoragePartition;
  /** The file system of the partition, and all that other machines can mount too. */
  readonly file_systems: readonly IStoragePlace[];
  /** The partition as each cluster sees it. */
  readonly clusters: readonly IStorageSide[];
  /** Whether this is a space of Studio. */
  readonly studio: boolean;
  /** Whether several people act as this space. */
  readonly shared_space: boolean;
  /** Whether other users can exchange or write what is this user's on the partition; null when it cannot be looked at. */
  readonly separation: IStorageSeparation | null;
  /** What could not be had, and what is to be known. */
  readonly notes: readonly string[];
}

/** A folder above our own. */
export interface IStorageParent {
  /** Its path, with no link in it. */
  readonly path: string;
  /** Its owner. */
  readonly uid: number;
  /** Its permission bits. */
  readonly mode: string;
  /** Why what lies in it can be exchanged by another user than root and this one; null when it cannot. */
  readonly problem: 'foreign' | 'open' | 'group' | null;
}

/** The partition that runs go to. */
export interface IStoragePartition {
  /** The place. */
  readonly path: string;
  /** Whether it is there. */
  readonly exists: boolean;
  /** Where its file system is mounted. */
  readonly mount: string;
  /** Kind of the file system, such as `lustre`. */
  readonly kind: string | null;
  /** What is mounted, as the table of mounts has it. */
  readonly source: string | null;
  /** Id of the file system at AWS. */
  readonly file_system: string | null;
  /** Its mount name there. */
  readonly mount_name: string | null;
  /** The folder of the file system that is mounted: the storage partition; `/` for the whole. */
  readonly mounted_folder: string | null;
  /** The place's own path on the file system. */
  readonly path_there: string | null;
  /** Whether other machines can mount the file system. */
  readonly network: boolean;
  /** Whether the file system can only be read here. */
  readonly read_only: boolean;
  /** Whether this user may write there. */
  readonly writable: boolean | null;
  /** Whether others have rights there. */
  readonly open_to_others: boolean | null;
  /** What keeps them out. */
  readonly isolation: IStorageIsolation | null;
  /** Whether the partition that runs go to lies on it. */
  readonly runs_go_here: boolean;
  /** The user profile that it is the private partition of. */
  readonly private_of: string | null;
  /** Whether it is offered: a private partition is not, in a space that several people act as. */
  readonly offered: boolean;
  /** The file system as AWS knows it. */
  readonly aws: IAwsFileSystem | null;
  /** Why it cannot be looked at, or is not offered. */
  readonly problem: string | null;
  /** Who says so. */
  readonly chosen_by: string;
  /** Our folder on it. */
  readonly folder: string;
  /** Whether runs there are for all users of the partition, by the configuration. */
  readonly shared: boolean;
  /** The file with the index of runs; null: in memory only. */
  readonly index: string | null;
  readonly total: number | null;
  readonly free: number | null;
  readonly files_free: number | null;
}

/** A path on each side: `here` on the server's machine (`studio`: that is a space of Studio), and as each cluster sees it. */
export interface IStoragePaths {
  readonly here: string;
  readonly studio: boolean;
  readonly clusters: readonly IStorageSide[];
}

/** A file system that is mounted here, or a path on one. What is not known is null. */
export interface IStoragePlace {
  /** The place. */
  readonly path: string;
  /** Whether it is there. */
  readonly exists: boolean;
  /** Where its file system is mounted. */
  readonly mount: string;
  /** Kind of the file system, such as `lustre`. */
  readonly kind: string | null;
  /** What is mounted, as the table of mounts has it. */
  readonly source: string | null;
  /** Id of the file system at AWS. */
  readonly file_system: string | null;
  /** Its mount name there. */
  readonly mount_name: string | null;
  /** The folder of the file system that is mounted: the storage partition; `/` for the whole. */
  readonly mounted_folder: string | null;
  /** The place's own path on the file system. */
  readonly path_there: string | null;
  /** Whether other machines can mount the file system. */
  readonly network: boolean;
  /** Whether the file system can only be read here. */
  readonly read_only: boolean;
  /** Whether this user may write there. */
  readonly writable: boolean | null;
  /** Whether others have rights there. */
  readonly open_to_others: boolean | null;
  /** What keeps them out. */
  readonly isolation: IStorageIsolation | null;
  /** Whether the partition that runs go to lies on it. */
  readonly runs_go_here: boolean;
  /** The user profile that it is the private partition of. */
  readonly private_of: string | null;
  /** Whether it is offered: a private partition is not, in a space that several people act as. */
  readonly offered: boolean;
  /** The file system as AWS knows it. */
  readonly aws: IAwsFileSystem | null;
  /** Why it cannot be looked at, or is not offered. */
  readonly problem: string | null;
  readonly total: number | null;
  readonly free: number | null;
  readonly files_free: number | null;
}

/** What of storage is looked at. */
export interface IStorageQuery {
  /** Whether AWS is asked what it knows of file systems that come from there. */
  readonly aws?: boolean;
}

/** Whether other users can exchange or write what is this user's. */
export interface IStorageSeparation {
  /** The partition's root and the folders above it, from `/` on. */
  readonly parents: readonly IStorageParent[];
  /** Whether nobody but root and this user can exchange or write our folder. */
  readonly holds: boolean;
  /** Why it does not hold; null when it does. */
  readonly reason: string | null;
  /** What to do about it. */
  readonly fix: string | null;
  /** Number of this user's runs in the old layout, of which `holds` says nothing. */
  readonly old_runs: number;
}

/** A path as one cluster sees it. */
export interface IStorageSide {
  /** The cluster. */
  readonly cluster: string;
  /** What schedules there. */
  readonly orchestrator: string;
  /** Where that is: `here`, `Slurm node` or `pod`. */
  readonly side: string;
  /** The path on this machine; null when the cluster cannot be known. */
  readonly here: string | null;
  /** The path on that side; null when there is none. */
  readonly there: string | null;
  /** Why there is none. */
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
