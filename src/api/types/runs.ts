/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

import { IError, RunState } from './base';
import { IJobSpec } from './spec';
import { NodeAction } from './clusters';
import { IHyperpodMetrics } from './telemetry';

/** How to call it. */
export interface IAdoptBody {
  /** A name for the run; default: the job's own. */
  readonly name?: string | null;
}

/** One execution of a run. */
export interface IAttempt {
  readonly number: number;
  readonly state: RunState;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly exit_code: number | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly nodes: readonly string[];
  readonly first_error: IFirstError | null;
}

/** Which notebook. */
export interface ICellsQuery {
  /** The notebook's path under the server's root. */
  readonly notebook: string;
  /** Look at this many of its newest runs at most. */
  readonly limit?: number;
}

/** What is changed about a run that waits or runs; what is left out stays. */
export interface IChangeBody {
  /** The new time limit, counted from the start: seconds, or a text such as 2h. */
  readonly time_limit?: number | string | null;
  /** The queue that it is moved to, while it waits. */
  readonly queue?: string | null;
}

/** The children of an array, in the order of their indices. */
export interface IChildren {
  readonly runs: readonly IRun[];
}

/** The files of a run's code and project, as they were sent. */
export interface ICode {
  readonly files: readonly ICodeFile[];
}

/** One file of the code, by its place in the bundle, and its bytes; null when it is gone. */
export interface ICodeFile {
  readonly path: string;
  readonly size: number | null;
}

/** The text of one file. */
export interface ICodeText {
  readonly path: string;
  readonly text: string;
}

/** The error of the rank that failed first: where to look. */
export interface IFirstError {
  readonly rank: number;
  readonly type: string;
  readonly message: string;
  readonly time: string;
  readonly cell: number | null;
  readonly line: number | null;
  readonly traceback: string;
}

/** One thing found in a spec, a notebook or a cluster. A finding of level `error` refuses the run; the others only inform. */
export interface IFoundThing {
  readonly level: 'error' | 'warning' | 'info';
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly field: string | null;
}

/** A user who holds what a run waits for: accelerators, nodes, and the jobs they are in. */
export interface IHolder {
  readonly user: string;
  readonly accelerators: number;
  readonly nodes: number;
  readonly jobs: number;
}

/** How to open a terminal on a node. The command needs programs, some of which may be `missing`. */
export interface IHyperpodTerminal {
  /** The node's instance id. */
  readonly instance: string;
  /** What Systems Manager calls it: `sagemaker-cluster:CLUSTERID_GROUP-INSTANCE`. */
  readonly target: string;
  /** The command of the AWS CLI, word by word. */
  readonly command: readonly string[];
  readonly missing: readonly IMissingProgram[];
  readonly line: string;
}

/** A program that is not installed where the server runs; `what` says what it is a part of, and where to get it. */
export interface IMissingProgram {
  readonly name: string;
  readonly what: string;
}

/** What can be done to nodes of a cluster. */
export interface INodeAbilities {
  readonly actions: readonly INodeAbility[];
}

/** Whether something can be done to nodes of a cluster. */
export interface INodeAbility {
  /** What. */
  readonly action: NodeAction;
  /** Why it cannot; null where nothing is known to be in its way. */
  readonly problem: IError | null;
}

/** The newest runs of a notebook, newest first, and for each cell the newest run that has it. */
export interface INotebookCells {
  readonly runs: readonly IRun[];
  readonly cells: readonly IRunOfCell[];
}

/** The address, under the API's own, that opens a port in the browser: once, for this user, within `seconds`. */
export interface IOpenedPort {
  readonly path: string;
  readonly ticket: string;
  readonly seconds: number;
}

/** Exactly what would run. */
export interface IPreview {
  readonly run_id: string;
  readonly name: string;
  readonly rendered: IRenderedText;
  readonly command: readonly string[];
  readonly files: readonly string[];
  readonly parts: readonly IPreviewPart[];
  readonly findings: readonly IFoundThing[];
}

/** One part of the preview. */
export interface IPreviewPart {
  /** Such as `Cell 3`. */
  readonly title: string;
  /** For syntax colours: `python`, `bash`, `yaml` or `text`. */
  readonly language: string;
  /** The code as it will run. */
  readonly text: string;
  /** What becomes of each magic or shell line in it. */
  readonly notes: readonly string[];
}

/** The script or manifest that the scheduler is given. */
export interface IRenderedText {
  readonly name: string;
  readonly text: string;
}

/** One run, or a child of an array; `own` says whether it is the server's own user's. */
export interface IRun {
  readonly state: RunState;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly exit_code: number | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly attempts: readonly IAttempt[];
  readonly run_id: string;
  readonly name: string;
  readonly cluster: string;
  readonly orchestrator: string;
  /** The name of the user with the number `uid`, who owns its folder. */
  readonly user: string;
  readonly uid: number;
  /** The queue that it was sent to. */
  readonly queue: string | null;
  readonly created_at: string;
  readonly submitted_at: string | null;
  /** What the scheduler calls it. */
  readonly scheduler_id: string | null;
  /** The id of the array that it is a child of. */
  readonly parent: string | null;
  /** Its folder on this machine. */
  readonly bundle: string;
  /** The notebook that it was sent from. */
  readonly notebook: string | null;
  /** The kind of object that the scheduler has of it, such as `PyTorchJob`; null where it has one only. */
  readonly kind: string | null;
  readonly nodes: number;
  readonly processes_per_node: number;
  /** How many children an array has in each state; null without any. */
  readonly children: Readonly<Partial<Record<RunState, number>>> | null;
  /** The shared space of Studio that it acts as; null elsewhere. */
  readonly space: string | null;
  readonly own: boolean;
}

/** What of a run's nodes can be reached. */
export interface IRunAccess {
  /** The run. */
  readonly run_id: string;
  /** Whether ports of its nodes can be reached now. */
  readonly ports: boolean;
  /** Why they cannot, or why shells are not known; null when all is well. */
  readonly reason: string | null;
  /** How to open a shell on its nodes, by their rank. */
  readonly shells: readonly IShell[];
}

/** Emitted each time that the state of one of the user's runs changes. Holds no paths, accounts or log text. */
export interface IRunEvent {
  readonly run_id: string;
  readonly name: string;
  readonly cluster: string;
  readonly state: RunState;
  readonly reason_code: string | null;
  readonly parent: string | null;
}

/** A page of runs, newest first, and the cursor of the next one. */
export interface IRunList {
  readonly runs: readonly IRun[];
  readonly next: string | null;
}

/** What was measured on the nodes of a run while they were its own. */
export interface IRunMetrics {
  /** The run. */
  readonly run_id: string;
  /** The mean over its nodes. */
  readonly whole: IHyperpodMetrics;
  /** Each of its nodes that something is known of. */
  readonly nodes: readonly IHyperpodMetrics[];
}

/** Which attempt. */
export interface IRunMetricsQuery {
  /** Only while this attempt ran; default: all. */
  readonly attempt?: number | null;
}

/** The newest run that has a cell, and the CRC-32 of the cell's source as it was sent. */
export interface IRunOfCell {
  readonly id: string;
  readonly checksum: string;
  readonly run_id: string;
}

/** What a run used; null while it has not ended. */
export interface IRunUsage {
  readonly usage: IUsage | null;
}

/** Which runs to list. */
export interface IRunsQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. */
  readonly cursor?: string | null;
  /** Only runs of this cluster. */
  readonly cluster?: string | null;
  /** Only runs in these states; may be given several times, or once with commas. */
  readonly state?: readonly RunState[];
  /** The runs of all users of a shared storage partition, not only your own. */
  readonly all_users?: boolean;
}

/** A cell as it stood in the notebook when it was sent; its text is null when that cannot be read any more. */
export interface ISentCellText {
  readonly number: number;
  readonly id: string | null;
  readonly checksum: string | null;
  readonly text: string | null;
}

/** The cells that went with a run, and its notebook: absolute, and its path under the server's root when it lies there. */
export interface ISentCells {
  readonly notebook: string | null;
  readonly path: string | null;
  readonly cells: readonly ISentCellText[];
}

/** How a user opens a shell on one of a run's nodes. */
export interface IShell {
  /** The node's rank. */
  readonly node_rank: number;
  /** The node's name, or null while it has none. */
  readonly node: string | null;
  /** The command to copy, quoted for a shell. */
  readonly command: string;
}

/** What to run. */
export interface ISubmitBody {
  /** A run id made by the client: sent again, the same one is the same run, not a second one. */
  readonly run_id?: string | null;
  /** The cluster; default: the configured one. */
  readonly cluster?: string | null;
  /** The spec. */
  readonly spec: IJobSpec;
  /** Folder under the server's root that the spec's paths are relative to; default: the root itself. */
  readonly base?: string | null;
  /** The notebook as it is on the screen, unsaved edits included; default: the file. */
  readonly notebook?: Readonly<Record<string, unknown>> | null;
  /** Values of the spec's secrets that have no reference. They are never answered, logged or stored in the spec. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** An earlier run whose code is sent once more; the spec's source is then only told. */
  readonly clone_of?: string | null;
  /** The name of the user whose run `clone_of` is: confirms that another user's code is to run with your rights. */
  readonly trust_owner?: string | null;
}

/** What a run used in all its attempts together (`status/usage.json`). */
export interface IUsage {
  /** Who says it: the scheduler's accounting, or the run's own records. What the accounting leaves out comes from the records even so. */
  readonly source: 'accounting' | 'journal';
  /** How many attempts the records had; with others it is out of date. */
  readonly attempts: number;
  /** Seconds that the attempts took together; of an array, that its children took. */
  readonly elapsed: number | null;
  /** Nodes of the largest attempt. */
  readonly nodes: number | null;
  /** CPU time of all processes. */
  readonly cpu_seconds: number | null;
  /** Seconds that the run had accelerators, times their number; 0 when it had none, null when it is not known. */
  readonly accelerator_seconds: number | null;
  /** What they are: `gpu` or `neuron`. */
  readonly accelerator_kind: 'gpu' | 'neuron';
  /** Bytes: the most that one process had, or all processes of a node together as far as the scheduler sampled them. A node's true peak is at least that. */
  readonly max_memory: number | null;
  /** Of the rank that failed first; 128+N after signal N. */
  readonly exit_code: number | null;
  /** The signal that ended it. */
  readonly signal: number | null;
}

/** Who answers. */
export interface IVersionAnswer {
  readonly version: string;
  readonly api: number;
}

/** Why a run waits. */
export interface IWaitReason {
  /** The run. */
  readonly run_id: string;
  /** A sentence. */
  readonly reason: string | null;
  /** A word for programs. */
  readonly reason_code: string | null;
  /** Its place among those that wait for their turn, from 1; null when it does not wait for that. */
  readonly position: number | null;
  /** Who is counted for the place. */
  readonly counted: string | null;
  /** The first of those before it. */
  readonly ahead: readonly string[];
  /** When the cluster expects to start it. */
  readonly expected_start: string | null;
  /** Who holds what it may wait for, most first. */
  readonly holders: readonly IHolder[];
  /** What would start now in its place, a sentence each. */
  readonly would_start_now: readonly string[];
  /** How many other ways were asked for. */
  readonly tried: number;
}
