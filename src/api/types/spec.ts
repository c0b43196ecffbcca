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

/** A shell command: /bin/bash -c with the text as one argument. */
export interface ICommandSource {
  readonly kind?: 'command';
  /** The command's text. */
  readonly command: string;
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

/** A Python function with its arguments, carried by cloudpickle. */
export interface IFunctionSource {
  readonly kind?: 'function';
  /** Module that defines the function. */
  readonly module: string;
  /** The function's qualified name. */
  readonly qualname: string;
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
  /** HyperPod's auto-resume on node failure; default: on, where the cluster has it. */
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

/** What only a Kubernetes cluster understands. */
export interface IKubernetesOptions {
  /** Kind of object; default: the best that the cluster offers. */
  readonly kind?:
    'PyTorchJob' | 'HyperPodPyTorchJob' | 'TrainJob' | 'Job' | null;
  /** Namespace; default: the cluster's configured one. */
  readonly namespace?: string | null;
  /** Kubernetes service account of the pods, which gives them its AWS role (EKS Pod Identity, IRSA); default: the namespace's. */
  readonly service_account?: string | null;
  /** How near each other the pods are to be. */
  readonly topology?: ITopology | null;
  /** A patch on the manifest (RFC 7396; lists of things with names are merged by name); what stands under template is for each pod. */
  readonly patch?: Readonly<Record<string, unknown>>;
  /** Keep what stands beside the job in a manifest of your own when the run has ended. */
  readonly keep_companions?: boolean;
}

/** A file in the scheduler's own form, sent as written. */
export interface INativeSource {
  readonly kind?: 'native';
  /** The .sbatch or .yaml file. */
  readonly path: string;
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

/** A Python file. */
export interface IScriptSource {
  readonly kind?: 'script';
  /** The .py file. */
  readonly path: string;
}

/** What only a Slurm cluster understands. */
export interface ISlurmOptions {
  /** Further sbatch options by long name, such as constraint=a100; a switch such as exclusive needs no value. */
  readonly flags?: Readonly<Record<string, string | number | boolean>>;
}

/** How near each other the pods of a run are to be, where Kueue knows the cluster's topology. */
export interface ITopology {
  /** The node label of the level in which all pods are to fit, such as topology.k8s.aws/network-node-layer-3. */
  readonly level: string;
  /** Whether the run waits until they do. */
  readonly mode?: 'preferred' | 'required';
}
