"""`JobSpec`: what to run and with which resources. It knows no orchestrator.

From this one model come request validation, the OpenAPI document, the submit form, the options of the command line and of the magic,
and the reference in the docs. A field's place in those faces stands in its JSON schema under ``x-option`` (see `hyperpod_jlab.core.options`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from hyperpod_jlab.core.fields import WHOLE, ArrayText, Described, Duration, Size
from hyperpod_jlab.core.options import option
from hyperpod_jlab.core.quantities import parse_ranges
from hyperpod_jlab.core.run_id import RUN_ID
from hyperpod_jlab.core.validation import DNS_LABEL, DNS_SUBDOMAIN, LABEL, NAME

# --------------------------------------------------------------------------------------------------
# What a run executes: cells, a notebook, a script, a function, a command, or a native file.

Path = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f\x7f]+$")]


def _check_cells(text: str) -> str:
    if parse_ranges(text)[0] == 0:
        raise ValueError("cells are counted from 1")
    return text


CellList = Annotated[str, AfterValidator(_check_cells)]


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


class NotebookSource(Described):
    """A notebook, or some of its code cells."""

    kind: Literal["notebook"] = "notebook"
    path: Path
    """The .ipynb file."""
    cells: Annotated[CellList | None, option("--cells", metavar="2-5,7")] = None
    """Code cells to run, counted from 1; default: all."""
    tag: Annotated[
        str | None, Field(min_length=1, max_length=256), option("--tag", metavar="TAG")
    ] = None
    """Run only the code cells with this tag."""
    cell_ids: list[Annotated[str, Field(min_length=1, max_length=64)]] | None = None
    """Cells by their ids in the notebook, as a Lab selection names them."""


class ScriptSource(Described):
    """A Python file."""

    kind: Literal["script"] = "script"
    path: Path
    """The .py file."""


class FunctionSource(Described):
    """A Python function with its arguments, carried by cloudpickle."""

    kind: Literal["function"] = "function"
    module: Annotated[str, Field(max_length=512)]
    """Module that defines the function."""
    qualname: Annotated[str, Field(max_length=512)]
    """The function's qualified name."""


class CommandSource(Described):
    """A shell command: /bin/bash -c with the text as one argument."""

    kind: Literal["command"] = "command"
    command: Annotated[
        str,
        Field(min_length=1, max_length=131_072, pattern=r"^[^\x00]+$"),
        AfterValidator(_check_not_blank),
    ]
    """The command's text."""


class NativeSource(Described):
    """A file in the scheduler's own form, sent as written."""

    kind: Literal["native"] = "native"
    path: Path
    """The .sbatch or .yaml file."""


Source = Annotated[
    NotebookSource | ScriptSource | FunctionSource | CommandSource | NativeSource,
    Field(discriminator="kind"),
]
"""Any of the sources, told apart by ``kind``."""


class FilesSpec(Described):
    """Which project files go along with the code."""

    project: Annotated[bool, option("--project-files/--no-project-files")] = True
    """Take the files of the source's project along: tracked and new files under its folder, less what .gitignore and
    .hyperpodignore name."""
    root: Annotated[Path | None, option("--project-root", metavar="DIR")] = None
    """Folder of the project; default: the source's folder."""
    include: Annotated[list[str], option("--include", metavar="GLOB", repeat="list")] = Field(
        default_factory=list
    )
    """Further files, even ignored ones, as patterns relative to the root."""
    max_bytes: Annotated[int, Field(ge=0, le=1024**4), WHOLE] = 256 * 1024**2
    """Refuse to take along more than this."""


SPEC_FORMAT = 1
"""Format number of the specs that this version writes."""

LauncherKind = Literal["torchrun", "python", "none"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _one_line(value: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ValueError("line breaks and control characters are not allowed here")
    return value


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("a NUL byte is not allowed here")
    return value


NoNul = Annotated[str, AfterValidator(_no_nul)]
OneLine = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_one_line)]


class Accelerators(Described):
    """Accelerators on each node."""

    kind: Literal["gpu", "neuron"] = "gpu"
    """What they are: GPUs, or the NeuronCores of Trainium and Inferentia."""
    type: Annotated[str, Field(pattern=LABEL)] | None = None
    """A model, such as h100, or a MIG profile, when the cluster has several."""
    count: Annotated[int, Field(ge=0, le=1024), WHOLE] = 1
    """How many on each node."""


class Resources(Described):
    """What the run needs on how many nodes."""

    nodes: Annotated[int, Field(ge=1, le=10_000), WHOLE, option("--nodes", basic=True)] = 1
    """Number of nodes."""
    processes_per_node: Annotated[
        int | None, Field(ge=1, le=1024), WHOLE, option("--processes-per-node", basic=True)
    ] = None
    """Processes (ranks) on each node; default: one for each accelerator, at least one."""
    gpus_per_node: Annotated[
        int | None, Field(ge=0, le=1024), WHOLE, option("--gpus-per-node", basic=True)
    ] = None
    """GPUs on each node; the short form of accelerators."""
    accelerators: Accelerators | None = None
    """Accelerators on each node, with kind and type."""
    cpus: Annotated[int | None, Field(ge=1, le=4096), WHOLE, option("--cpus")] = None
    """CPUs on each node."""
    memory: Annotated[Size | None, option("--memory", metavar="SIZE")] = None
    """Memory on each node, such as 64G."""
    instance_type: Annotated[OneLine | None, option("--instance-type")] = None
    """Instance type to run on, such as ml.p5.48xlarge."""
    instance_group: Annotated[OneLine | None, option("--instance-group")] = None
    """HyperPod instance group to run on."""
    efa: Annotated[int | None, Field(ge=0, le=64), WHOLE] = None
    """EFA interfaces for each node; default: what the instance type has when whole nodes are asked for."""

    @model_validator(mode="after")
    def _one_count(self) -> Resources:
        if self.accelerators is not None and self.gpus_per_node is not None:
            same = self.accelerators.kind == "gpu" and self.accelerators.count == self.gpus_per_node
            if not same:
                raise ValueError("gpus_per_node and accelerators say different things; give one")
        return self

    @property
    def accelerator(self) -> Accelerators:
        """The accelerators asked for on each node, whichever form was used; count 0 when none."""
        if self.accelerators is not None:
            return self.accelerators
        return Accelerators(count=self.gpus_per_node or 0)

    @property
    def processes(self) -> int:
        """Processes on each node, the default resolved."""
        return self.processes_per_node or max(1, self.accelerator.count)


LAUNCHER_VARIABLES = frozenset(
    {
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    }
)
"""What every process of a run is given (design: the launcher)."""


def _check_variables(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"'{name[:60]}' is not an environment variable's name")
        if "\0" in value:
            raise ValueError(f"the value of {name} holds a NUL byte")
        if name.startswith("HYPERPOD_"):
            raise ValueError(f"{name}: names that start with HYPERPOD_ are ours")
        if name in LAUNCHER_VARIABLES:
            raise ValueError(f"{name} is set by the launcher, for each process its own")
    return variables


_LONGEST_SECRET_NAME = 200  # a file is named after it


def _check_secrets(references: dict[str, str]) -> dict[str, str]:
    for name in references:
        if len(name) > _LONGEST_SECRET_NAME:
            raise ValueError(f"'{name[:60]}...' is longer than {_LONGEST_SECRET_NAME} characters")
    return _check_variables(references)


class Environment(Described):
    """Where the code runs: an interpreter on the node, or an image, and its variables."""

    python: Annotated[OneLine | None, option("--python", metavar="PATH", basic=True)] = None
    """Path of the Python interpreter on the far side; default: the cluster's."""
    image: Annotated[OneLine | None, option("--image", metavar="REF")] = None
    """Container image, where the cluster runs containers."""
    variables: Annotated[
        dict[str, str],
        AfterValidator(_check_variables),
        option("--env", metavar="K=V", repeat="map"),
    ] = Field(default_factory=dict)
    """Environment variables. Nothing of the submitter's own environment is inherited."""
    secrets: Annotated[
        dict[str, str],
        AfterValidator(_check_secrets),
        option("--secret", metavar="NAME[=REF]", repeat="secrets"),
    ] = Field(default_factory=dict)
    """Secrets by the variable's name; the value is a reference that is resolved on the far side, or empty: then the value travels
    as a file that the launcher deletes once read."""
    setup: Annotated[NoNul | None, Field(max_length=65536), option("--setup", metavar="LINES")] = (
        None
    )
    """Shell lines to run on each node before the ranks, such as module load."""


class SlurmOptions(Described):
    """What only a Slurm cluster understands."""

    flags: Annotated[
        dict[str, str | int | bool], option("--slurm", metavar="FLAG[=VALUE]", repeat="flags")
    ] = Field(default_factory=dict)
    """Further sbatch options by long name, such as constraint=a100; a switch such as exclusive needs no value."""


class Topology(Described):
    """How near each other the pods of a run are to be, where Kueue knows the cluster's topology."""

    level: OneLine
    """The node label of the level in which all pods are to fit, such as topology.k8s.aws/network-node-layer-3."""
    mode: Literal["preferred", "required"] = "preferred"
    """Whether the run waits until they do."""


class KubernetesOptions(Described):
    """What only a Kubernetes cluster understands."""

    kind: Literal["PyTorchJob", "HyperPodPyTorchJob", "TrainJob", "Job"] | None = None
    """Kind of object; default: the best that the cluster offers."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL)] | None = None
    """Namespace; default: the cluster's configured one."""
    service_account: Annotated[
        str | None, Field(pattern=DNS_SUBDOMAIN), option("--service-account", metavar="NAME")
    ] = None
    """Kubernetes service account of the pods, which gives them its AWS role (EKS Pod Identity, IRSA); default: the namespace's."""
    topology: Topology | None = None
    """How near each other the pods are to be."""
    patch: dict[str, Any] = Field(default_factory=dict)
    """A patch on the manifest (RFC 7396; lists of things with names are merged by name); what stands under template is for each pod."""
    keep_companions: Annotated[bool, option("--keep-companions/--no-keep-companions")] = False
    """Keep what stands beside the job in a manifest of your own when the run has ended."""


def _check_run_ids(ids: list[str]) -> list[str]:
    for run_id in ids:
        if not RUN_ID.fullmatch(run_id):
            raise ValueError(f"'{run_id[:60]}' is not a run id")
    return ids


class JobSpec(Described):
    """One run: its code, resources, launcher and environment."""

    format: Literal[1] = 1
    """Format of this document."""
    name: Annotated[str | None, Field(pattern=NAME), option("--name", basic=True)] = None
    """Name for people; default: taken from the source."""
    source: Source
    """What to run."""
    args: Annotated[list[NoNul], Field(max_length=10_000)] = Field(default_factory=list)
    """Arguments of the script, notebook or command."""
    files: FilesSpec = Field(default_factory=FilesSpec)
    """Which project files go along."""
    resources: Resources = Field(default_factory=Resources)
    """Nodes, processes, accelerators, memory."""
    launcher: Annotated[LauncherKind | None, option("--launcher", basic=True)] = None
    """How the processes start. Default: none for a command, torchrun for more than one process, else python."""
    environment: Environment = Field(default_factory=Environment)
    """Interpreter or image, variables, secrets, setup lines."""
    queue: Annotated[OneLine | None, option("--queue", basic=True)] = None
    """Queue to wait in."""
    account: Annotated[OneLine | None, option("--account")] = None
    """Account to charge."""
    qos: Annotated[OneLine | None, option("--qos")] = None
    """Quality of service, where the cluster has it."""
    priority: Annotated[OneLine | None, option("--priority")] = None
    """Priority class, where the cluster has it."""
    time_limit: Annotated[Duration | None, option("--time-limit", metavar="TIME", basic=True)] = (
        None
    )
    """Longest run time, such as 2h; the run is ended after it."""
    max_restarts: Annotated[int, Field(ge=0, le=100), WHOLE, option("--max-restarts")] = 0
    """How many further attempts a failed run gets."""
    auto_resume: Annotated[bool | None, option("--auto-resume/--no-auto-resume")] = None
    """HyperPod's auto-resume on node failure; default: on, where the cluster has it."""
    stop_grace: Annotated[Duration, option("--stop-grace", metavar="TIME")] = 10
    """Seconds between SIGTERM and SIGKILL when a run is ended."""
    forward_signals: Literal["caught", "always", "never"] = "caught"
    """Whether a rank gets the warning signal before the time limit: only if it catches it, always, or never."""
    after: Annotated[
        list[str], AfterValidator(_check_run_ids), option("--after", metavar="RUN", repeat="list")
    ] = Field(default_factory=list)
    """Runs that must have succeeded before this one starts."""
    array: Annotated[ArrayText | None, option("--array", metavar="0-9%4")] = None
    """Indices of an array of child runs, with how many may run at once after %."""
    slurm: SlurmOptions = Field(default_factory=SlurmOptions)
    """Slurm's own options."""
    kubernetes: KubernetesOptions = Field(default_factory=KubernetesOptions)
    """Kubernetes' own options."""

    def is_resumed(self, on_hyperpod: bool) -> bool:
        """Whether HyperPod is to resume the run: on its clusters unless the run refuses it, on others when it asks for it.

        Args:
            on_hyperpod: Whether the cluster is configured as one of HyperPod's.
        """
        return on_hyperpod if self.auto_resume is None else self.auto_resume

    @property
    def resolved_launcher(self) -> LauncherKind:
        """The launcher, the default resolved (design: none for a command, torchrun for several processes, else python)."""
        if self.launcher is not None:
            return self.launcher
        if self.source.kind == "command":
            return "none"
        return "torchrun" if self.world_size > 1 else "python"

    @property
    def world_size(self) -> int:
        """Processes of the whole run."""
        return self.resources.nodes * self.resources.processes


__all__ = [
    "SPEC_FORMAT",
    "Accelerators",
    "Environment",
    "FilesSpec",
    "JobSpec",
    "KubernetesOptions",
    "LauncherKind",
    "Resources",
    "SlurmOptions",
    "Source",
    "Topology",
]
