/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */

/** Accelerators on each node. */
export interface IAccelerators {
  /** What they are: GPUs, or the NeuronCores of Trainium and Inferentia. */
  readonly kind?: 'gpu' | 'neuron';
  /** A model, such as h100, or a MIG profile, when the cluster has several. */
  readonly type?: string | null;
  /** How many on each node. */
  readonly count?: number;
}

/** Frames up to `seq` are taken in. */
export interface IAck {
  readonly type: 'ack';
  readonly id: number;
  readonly seq: number;
}

/** One execution of a run. */
export interface IAttempt {
  readonly number: number;
  readonly state:
    | 'submitting'
    | 'waiting'
    | 'running'
    | 'succeeded'
    | 'failed'
    | 'cancelled'
    | 'unknown';
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly exit_code: number | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly nodes: readonly string[];
  readonly first_error: IFirstError | null;
}

/** The logs of an attempt. */
export interface IAttemptStreams {
  readonly number: number;
  readonly streams: readonly IStreamInfo[];
}

/** The children of an array, in the order of their indices. */
export interface IChildren {
  readonly runs: readonly IRun[];
}

/** A cluster of the configuration, and whether it answers. */
export interface ICluster {
  readonly name: string;
  readonly orchestrator: string;
  readonly default: boolean;
  readonly state: string;
  readonly reason: string | null;
  readonly nodes: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A node. Memory is in bytes. */
export interface IClusterNode {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
  readonly cpus: number | null;
  readonly cpus_free: number | null;
  readonly memory: number | null;
  readonly accelerators: number;
  readonly accelerators_free: number;
  readonly accelerator_type: string | null;
  readonly instance_type: string | null;
  readonly instance_group: string | null;
  readonly queues: readonly string[];
  readonly jobs: readonly string[];
}

/** A page of clusters. */
export interface IClusters {
  readonly clusters: readonly ICluster[];
  readonly next: string | null;
  readonly total: number;
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

/** A shell command: /bin/bash -c with the text as one argument. */
export interface ICommandSource {
  readonly kind?: 'command';
  /** The command's text. */
  readonly command: string;
}

/** The run has ended and all of its log was sent. */
export interface IEnd {
  readonly type: 'end';
  readonly id: number;
}

/** Where the code runs: an interpreter on the node, or an image, and its variables. */
export interface IEnvironment {
  /** Path of the Python interpreter on the far side; default: the cluster's. */
  readonly python?: string | null;
  /** Container image, where the cluster runs containers. */
  readonly image?: string | null;
  /** Environment variables. Nothing of the submitter's own environment is inherited. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Secrets by the variable's name; the value is a reference that is resolved on the far side, or empty: then the value travels as a file that the launcher deletes once read. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Shell lines to run on each node before the ranks, such as module load. */
  readonly setup?: string | null;
}

/** The one shape of an error. */
export interface IError {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The subscription is over; without `id` the message was not understood. */
export interface IFailure {
  readonly type: 'error';
  readonly error: IError;
  readonly id?: number;
}

/** Which project files go along with the code. */
export interface IFilesSpec {
  /** Take the files of the source's project along: tracked and new files under its folder, less what .gitignore and .hyperpodignore name. */
  readonly project?: boolean;
  /** Folder of the project; default: the source's folder. */
  readonly root?: string | null;
  /** Further files, even ignored ones, as patterns relative to the root. */
  readonly include?: readonly string[];
  /** Refuse to take along more than this. */
  readonly max_bytes?: number;
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

/** Lines; `after` is the cursor behind them. */
export interface IFrame {
  readonly blocks: readonly ILogBlock[];
  readonly after: string;
  readonly type: 'frame';
  readonly id: number;
  readonly seq: number;
}

/** A Python function with its arguments, carried by cloudpickle. */
export interface IFunctionSource {
  readonly kind?: 'function';
  /** Module that defines the function. */
  readonly module: string;
  /** The function's qualified name. */
  readonly qualname: string;
}

/** One entry of the queue of all users; `run_id` is set when it is a run of ours. */
export interface IJob {
  readonly scheduler_id: string;
  readonly name: string;
  readonly user: string;
  readonly state: string;
  readonly queue: string | null;
  readonly reason: string | null;
  readonly nodes: readonly string[];
  readonly run_id: string | null;
  readonly submitted_at: string | null;
  readonly started_at: string | null;
}

/** One run: its code, resources, launcher and environment. */
export interface IJobSpec {
  /** Format of this document. */
  readonly format?: 1;
  /** Name for people; default: taken from the source. */
  readonly name?: string | null;
  /** What to run. */
  readonly source:
    | INotebookSource
    | IScriptSource
    | IFunctionSource
    | ICommandSource
    | INativeSource;
  /** Arguments of the script, notebook or command. */
  readonly args?: readonly string[];
  /** Which project files go along. */
  readonly files?: IFilesSpec;
  /** Nodes, processes, accelerators, memory. */
  readonly resources?: IResources;
  /** How the processes start. Default: none for a command, torchrun for more than one process, else python. */
  readonly launcher?: 'torchrun' | 'python' | 'none' | null;
  /** Interpreter or image, variables, secrets, setup lines. */
  readonly environment?: IEnvironment;
  /** Queue to wait in. */
  readonly queue?: string | null;
  /** Account to charge. */
  readonly account?: string | null;
  /** Quality of service, where the cluster has it. */
  readonly qos?: string | null;
  /** Priority class, where the cluster has it. */
  readonly priority?: string | null;
  /** Longest run time, such as 2h; the run is ended after it. */
  readonly time_limit?: number | string | null;
  /** How many further attempts a failed run gets. */
  readonly max_restarts?: number;
  /** HyperPod's auto-resume on node failure, where the cluster has it. */
  readonly auto_resume?: boolean | null;
  /** Seconds between SIGTERM and SIGKILL when a run is ended. */
  readonly stop_grace?: number | string;
  /** Whether a rank gets the warning signal before the time limit: only if it catches it, always, or never. */
  readonly forward_signals?: 'caught' | 'always' | 'never';
  /** Runs that must have succeeded before this one starts. */
  readonly after?: readonly string[];
  /** Indices of an array of child runs, with how many may run at once after %. */
  readonly array?: string | null;
  /** Slurm's own options. */
  readonly slurm?: ISlurmOptions;
  /** Kubernetes' own options. */
  readonly kubernetes?: IKubernetesOptions;
}

/** A page of jobs. */
export interface IJobs {
  readonly jobs: readonly IJob[];
  readonly next: string | null;
  readonly total: number;
}

/** What only a Kubernetes cluster understands. */
export interface IKubernetesOptions {
  /** Kind of object; default: the best that the cluster offers. */
  readonly kind?:
    'PyTorchJob' | 'HyperPodPyTorchJob' | 'TrainJob' | 'Job' | null;
  /** Namespace; default: the cluster's configured one. */
  readonly namespace?: string | null;
  /** A JSON merge patch on the manifest (RFC 7396). */
  readonly patch?: Readonly<Record<string, unknown>>;
}

/** A stretch of one stream, arranged by column. */
export interface ILogBlock {
  readonly attempt: number;
  readonly node: string;
  readonly node_rank: number;
  readonly rank: number | null;
  readonly index: number | null;
  readonly mark: ILogMark | null;
  readonly lines: string | null;
  readonly times: number | readonly (number | null)[] | null;
  readonly flags: readonly (readonly [number, number])[] | null;
}

/** Blocks in the order in which they are to be shown, and the cursor behind them. */
export interface ILogFrame {
  readonly blocks: readonly ILogBlock[];
  readonly after: string;
}

/** A line in which something was found: `match` are its begin and end, in characters. */
export interface ILogHit {
  readonly attempt: number;
  readonly node: string;
  readonly node_rank: number;
  readonly rank: number | null;
  readonly index: number | null;
  readonly time: number | null;
  readonly line: string;
  readonly match: readonly [number, number];
  readonly cursor: string;
}

/** Hits, the cursor to search on from (null when all was searched), and the bytes that were searched. */
export interface ILogHits {
  readonly hits: readonly ILogHit[];
  readonly next: string | null;
  readonly scanned: number;
}

/** Something that happened in a stream before its lines. */
export interface ILogMark {
  readonly kind: 'attempt' | 'truncated' | 'replaced' | 'gap' | 'unreadable';
  readonly text: string;
}

/** Some lines, and the cursors on both sides of them. */
export interface ILogPage {
  readonly frames: readonly ILogFrame[];
  readonly before: string;
  readonly after: string;
  readonly at_start: boolean;
  readonly at_end: boolean;
}

/** A file in the scheduler's own form, sent as written. */
export interface INativeSource {
  readonly kind?: 'native';
  /** The .sbatch or .yaml file. */
  readonly path: string;
}

/** A page of nodes. */
export interface INodes {
  readonly nodes: readonly IClusterNode[];
  readonly next: string | null;
  readonly total: number;
}

/** A notebook, or some of its code cells. */
export interface INotebookSource {
  readonly kind?: 'notebook';
  /** The .ipynb file. */
  readonly path: string;
  /** Code cells to run, counted from 1; default: all. */
  readonly cells?: string | null;
  /** Run only the code cells with this tag. */
  readonly tag?: string | null;
  /** Cells by their ids in the notebook, as a Lab selection names them. */
  readonly cell_ids?: readonly string[] | null;
}

/** Which page of a log. */
export interface IPageQuery {
  /** Only this attempt. */
  readonly attempt?: number | null;
  /** Only the node of this rank. */
  readonly node?: number | null;
  /** Only these global ranks; in a query several times, or once with commas. */
  readonly ranks?: readonly number[] | null;
  /** Whether the nodes' own logs come too; default: unless ranks are asked for. */
  readonly node_logs?: boolean | null;
  /** Only lines in which this regular expression is found. */
  readonly grep?: string | null;
  /** Whether upper and lower case are the same to `grep`. */
  readonly ignore_case?: boolean;
  /** Begin with the last so many lines; of no meaning with a cursor or in a page. */
  readonly tail?: number | null;
  /** Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Show of progress bars only what they showed last. */
  readonly collapse?: boolean;
  /** Before the cursor (or the end), or from the cursor (or the start) on. */
  readonly direction?: 'backward' | 'forward';
  /** At most so many lines. */
  readonly limit?: number;
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

/** A place where jobs wait. The time limit is in seconds. */
export interface IQueue {
  readonly name: string;
  readonly state: string;
  readonly default: boolean;
  readonly nodes: number | null;
  readonly slots: number | null;
  readonly slots_free: number | null;
  readonly time_limit: number | null;
  readonly running: number;
  readonly waiting: number;
}

/** A page of queues. */
export interface IQueues {
  readonly queues: readonly IQueue[];
  readonly next: string | null;
  readonly total: number;
}

/** Which stream; rank 0 when nothing is said. */
export interface IRawQuery {
  /** A rank's log. */
  readonly rank?: number | null;
  /** Without a rank: the own log of the node of this rank. */
  readonly node?: number | null;
  /** Its attempt; default: the newest one that has the stream. */
  readonly attempt?: number | null;
}

/** The script or manifest that the scheduler is given. */
export interface IRenderedText {
  readonly name: string;
  readonly text: string;
}

/** What the run needs on how many nodes. */
export interface IResources {
  /** Number of nodes. */
  readonly nodes?: number;
  /** Processes (ranks) on each node; default: one for each accelerator, at least one. */
  readonly processes_per_node?: number | null;
  /** GPUs on each node; the short form of accelerators. */
  readonly gpus_per_node?: number | null;
  /** Accelerators on each node, with kind and type. */
  readonly accelerators?: IAccelerators | null;
  /** CPUs on each node. */
  readonly cpus?: number | null;
  /** Memory on each node, such as 64G. */
  readonly memory?: number | string | null;
  /** Instance type to run on, such as ml.p5.48xlarge. */
  readonly instance_type?: string | null;
  /** HyperPod instance group to run on. */
  readonly instance_group?: string | null;
  /** EFA interfaces for each node; default: what the instance type has when whole nodes are asked for. */
  readonly efa?: number | null;
}

/** One run, or a child of an array. */
export interface IRun {
  readonly run_id: string;
  readonly name: string;
  readonly cluster: string;
  readonly orchestrator: string;
  readonly user: string;
  readonly queue: string | null;
  readonly state:
    | 'submitting'
    | 'waiting'
    | 'running'
    | 'succeeded'
    | 'failed'
    | 'cancelled'
    | 'unknown';
  readonly reason: string | null;
  readonly reason_code: string | null;
  readonly exit_code: number | null;
  readonly created_at: string | null;
  readonly submitted_at: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly scheduler_id: string | null;
  readonly parent: string | null;
  readonly bundle: string;
  readonly notebook: string | null;
  readonly nodes: number;
  readonly processes_per_node: number;
  readonly children: Readonly<
    Partial<
      Record<
        | 'submitting'
        | 'waiting'
        | 'running'
        | 'succeeded'
        | 'failed'
        | 'cancelled'
        | 'unknown',
        number
      >
    >
  > | null;
  readonly attempts: readonly IAttempt[];
}

/** Emitted each time that the state of one of the user's runs changes. Holds no paths, accounts or log text. */
export interface IRunEvent {
  readonly run_id: string;
  readonly name: string;
  readonly cluster: string;
  readonly state:
    | 'submitting'
    | 'waiting'
    | 'running'
    | 'succeeded'
    | 'failed'
    | 'cancelled'
    | 'unknown';
  readonly reason_code: string | null;
  readonly parent: string | null;
}

/** A page of runs, newest first, and the cursor of the next one. */
export interface IRunList {
  readonly runs: readonly IRun[];
  readonly next: string | null;
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
  readonly state?: readonly (
    | 'submitting'
    | 'waiting'
    | 'running'
    | 'succeeded'
    | 'failed'
    | 'cancelled'
    | 'unknown'
  )[];
  /** Everybody's runs on the storage partition, not only one's own. */
  readonly all_users?: boolean;
}

/** A Python file. */
export interface IScriptSource {
  readonly kind?: 'script';
  /** The .py file. */
  readonly path: string;
}

/** What to search, and from where on. */
export interface ISearchQuery {
  /** Only this attempt. */
  readonly attempt?: number | null;
  /** Only the node of this rank. */
  readonly node?: number | null;
  /** Only these global ranks; in a query several times, or once with commas. */
  readonly ranks?: readonly number[] | null;
  /** Whether the nodes' own logs come too; default: unless ranks are asked for. */
  readonly node_logs?: boolean | null;
  /** Only lines in which this regular expression is found. */
  readonly grep?: string | null;
  /** Whether upper and lower case are the same to `grep`. */
  readonly ignore_case?: boolean;
  /** Begin with the last so many lines; of no meaning with a cursor or in a page. */
  readonly tail?: number | null;
  /** Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Show of progress bars only what they showed last. */
  readonly collapse?: boolean;
  /** From the cursor (or the start) on, or before it (or the end). */
  readonly direction?: 'backward' | 'forward';
  /** At most so many hits. */
  readonly limit?: number;
}

/** What only a Slurm cluster understands. */
export interface ISlurmOptions {
  /** Further sbatch options by long name, such as {"exclusive": true}. */
  readonly flags?: Readonly<Record<string, string | number | boolean>>;
}

/** One log that can be chosen. */
export interface IStreamInfo {
  readonly node_rank: number;
  readonly node: string;
  readonly rank: number | null;
  readonly local_rank: number | null;
  readonly index: number | null;
  readonly size: number;
  readonly last_at: string | null;
  readonly silent: boolean;
}

/** The logs of a run. */
export interface IStreams {
  readonly attempts: readonly IAttemptStreams[];
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
}

/** Follow a run's log. An id that is in use is given to this subscription from `subscribed` on. */
export interface ISubscribe {
  /** Only this attempt. */
  readonly attempt?: number | null;
  /** Only the node of this rank. */
  readonly node?: number | null;
  /** Only these global ranks; in a query several times, or once with commas. */
  readonly ranks?: readonly number[] | null;
  /** Whether the nodes' own logs come too; default: unless ranks are asked for. */
  readonly node_logs?: boolean | null;
  /** Only lines in which this regular expression is found. */
  readonly grep?: string | null;
  /** Whether upper and lower case are the same to `grep`. */
  readonly ignore_case?: boolean;
  /** Begin with the last so many lines; of no meaning with a cursor or in a page. */
  readonly tail?: number | null;
  /** Begin at this time: Unix seconds, or ISO 8601; of no meaning with a cursor or in a page. */
  readonly since?: number | string | null;
  /** Go on from here. */
  readonly cursor?: string | null;
  /** Show of progress bars only what they showed last. */
  readonly collapse?: boolean;
  readonly type: 'subscribe';
  readonly id: number;
  readonly run_id: string;
}

/** The run exists and may be read; frames follow. */
export interface ISubscribed {
  readonly type: 'subscribed';
  readonly id: number;
}

/** Which rows of a table. */
export interface ITableQuery {
  /** At most this many. */
  readonly limit?: number;
  /** Go on after an earlier page: its `next`. Sort and filter must be the same. */
  readonly cursor?: string | null;
  /** A column, or `-column` for the other way round; rows without a value come last. */
  readonly sort?: string | null;
  /** Words that must all occur in a row, in upper or lower case. */
  readonly filter?: string | null;
}

/** No more frames for this id. */
export interface IUnsubscribe {
  readonly type: 'unsubscribe';
  readonly id: number;
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
  readonly ahead: readonly string[];
  readonly expected_start: string | null;
  readonly would_start_now: readonly string[];
}
