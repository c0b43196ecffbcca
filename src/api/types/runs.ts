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

/** One file that was sent; its size is null when it is gone. */
export interface ICodeFile {
  readonly path: string;
  readonly size: number | null;
}

/** The text of one file. */
export interface ICodeText {
  readonly path: string;
  readonly text: string;
}

/** The error of the rank that failed first. */
export interface IFirstError {
  readonly rank: number;
  readonly type: string;
  readonly message: string;
  readonly time: string | null;
  readonly cell: number | null;
  readonly line: number | null;
  readonly traceback: string;
}

/** What was found wrong or worth saying; one of level ``error`` refuses the run. `field` is a path in the spec. */
export interface IFoundThing {
  readonly level: 'error' | 'warning' | 'info';
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly field: string | null;
}

/** A user who holds what a run waits for. */
export interface IHolder {
  readonly user: string;
  readonly accelerators: number;
  readonly nodes: number;
  readonly jobs: number;
}

/** How to open a terminal on a node: the command of the AWS CLI in words, and as a line for a shell. It needs programs, some of which may be `missing`. */
export interface IHyperpodTerminal {
  readonly instance: string;
  readonly target: string;
  readonly command: readonly string[];
  readonly line: string;
  readonly missing: readonly IMissingProgram[];
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

/** Something that can be done to nodes, or the `problem` why it cannot. A right that is missing at AWS is not known beforehand. */
export interface INodeAbility {
  readonly action: NodeAction;
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

/** One part of the code, as it will run. */
export interface IPreviewPart {
  readonly title: string;
  readonly language: string;
  readonly text: string;
  readonly notes: readonly string[];
}

/** The script or manifest that the scheduler is given. */
export interface IRenderedText {
  readonly name: string;
  readonly text: string;
}

/** One run, or a child of an array. `user` is the name of the user with the number `uid`, who owns its folder; `own` says whether that is the server's own user. `space` is the shared space of Studio that it acts as, null elsewhere. */
export interface IRun {
  readonly run_id: string;
  readonly name: string;
  readonly cluster: string;
  readonly orchestrator: string;
  readonly user: string;
  readonly uid: number;
  readonly own: boolean;
  readonly space: string | null;
  readonly queue: string | null;
  readonly state: RunState;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly exit_code: number | null;
  readonly created_at: string | null;
  readonly submitted_at: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly scheduler_id: string | null;
  readonly kind: string | null;
  readonly parent: string | null;
  readonly bundle: string;
  readonly notebook: string | null;
  readonly nodes: number;
  readonly processes_per_node: number;
  readonly children: Readonly<Partial<Record<RunState, number>>> | null;
  readonly attempts: readonly IAttempt[];
}

/** What of a run's nodes can be reached now; when their ports cannot, `reason` says why. */
export interface IRunAccess {
  readonly run_id: string;
  readonly ports: boolean;
  readonly reason: string | null;
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

/** What was measured on a run's nodes while they were its own: the mean over them, and each that something is known of. */
export interface IRunMetrics {
  readonly run_id: string;
  readonly whole: IHyperpodMetrics;
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

/** How to open a shell on one of a run's nodes: a command to copy. The node is null while it has no name. */
export interface IShell {
  readonly node_rank: number;
  readonly node: string | null;
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

/** What a run used in all its attempts together; times are in seconds, memory in bytes. `source` says who says so: the scheduler's accounting, or the run's own records. `accelerator_seconds` is seconds times accelerators, null when that is not known. `max_memory` is the most that one process had, or all of a node together as far as the scheduler sampled them. */
export interface IUsage {
  readonly source: 'accounting' | 'journal';
  readonly attempts: number;
  readonly elapsed: number | null;
  readonly nodes: number | null;
  readonly cpu_seconds: number | null;
  readonly accelerator_seconds: number | null;
  readonly accelerator_kind: 'gpu' | 'neuron';
  readonly max_memory: number | null;
  readonly exit_code: number | null;
  readonly signal: number | null;
}

/** Who answers. */
export interface IVersionAnswer {
  readonly version: string;
  readonly api: number;
}

/** Why a run waits. */
export interface IWaitReason {
  readonly run_id: string;
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly position: number | null;
  readonly counted: string | null;
  readonly ahead: readonly string[];
  readonly expected_start: string | null;
  readonly holders: readonly IHolder[];
  readonly would_start_now: readonly string[];
  readonly tried: number;
}
