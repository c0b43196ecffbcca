"""`JobSpec`: what to run and with which resources. It knows no orchestrator.

From this one model come request validation, the OpenAPI document, the submit form, the options of the command line and of the magic,
and the reference in the docs. A field's place in those faces stands in its JSON schema under ``x-option`` (see `hyperpod_jlab.core.options`).
"""

from __future__ import annotations

import json
import math
import re
from keyword import iskeyword
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from hyperpod_jlab.core.fields import (
    NO_MLFLOW,
    NOT_BOOL,
    ArrayText,
    DescribedModel,
    Duration,
    MetricPatterns,
    MlflowName,
    MlflowUri,
    Size,
)
from hyperpod_jlab.core.options import option
from hyperpod_jlab.core.quantities import parse_ranges
from hyperpod_jlab.core.run_id import RUN_ID
from hyperpod_jlab.core.validation import DNS_LABEL, DNS_SUBDOMAIN, LABEL, NAME

# --------------------------------------------------------------------------------------------------
# What a run executes: cells, a notebook, a script, a function, a command, or a native file.

Path = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f\x7f]+$")]


def _check_cells(text: str) -> str:
    if parse_ranges(text)[0] == 0:
        raise ValueError("cells are numbered from 1")
    return text


CellList = Annotated[str, AfterValidator(_check_cells)]


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _check_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    for name, value in parameters.items():
        if not name.isidentifier() or iskeyword(name):
            raise ValueError(f"'{name[:60]}' is not a name of a variable in Python")
        if isinstance(value, float) and math.isinf(value):
            raise ValueError(f"the value of {name} is too large for a number, or infinite")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"the value of {name} is not a number, a text, true, false, null, or a list or object of these"
            ) from error
        if len(text) > _MAX_PARAMETER:
            raise ValueError(f"the value of {name} is longer than {_MAX_PARAMETER} characters")
    return parameters


_MAX_PARAMETER = 65_536


class NotebookSource(DescribedModel):
    """A notebook, or some of its code cells."""

    kind: Literal["notebook"] = "notebook"
    path: Path
    """The .ipynb file."""
    cells: Annotated[CellList | None, option("--cells", metavar="CELLS")] = None
    """Code cells to run, such as 2-5,7, counted from 1. Default: all."""
    tag: Annotated[str | None, Field(min_length=1, max_length=256), option("--tag", metavar="TAG")] = None
    """Run only the code cells with this tag."""
    cell_ids: list[Annotated[str, Field(min_length=1, max_length=64)]] | None = None
    """Ids of the cells to run, as a selection in JupyterLab gives them."""
    parameters: Annotated[
        dict[str, Any],
        Field(max_length=200),
        AfterValidator(_check_parameters),
        option("--parameters", short="-p", metavar="NAME=VALUE", repeat="values"),
    ] = Field(default_factory=dict)
    """Values of variables, set after the cell that is tagged 'parameters'. A value is JSON or text, such as 0.1, true or train."""


class ScriptSource(DescribedModel):
    """A Python file."""

    kind: Literal["script"] = "script"
    path: Path
    """The .py file."""


class FunctionSource(DescribedModel):
    """A Python function with its arguments, serialized with cloudpickle."""

    kind: Literal["function"] = "function"
    module: Annotated[str, Field(max_length=512)]
    """Module that defines the function."""
    qualname: Annotated[str, Field(max_length=512)]
    """Qualified name of the function."""


class CommandSource(DescribedModel):
    """A shell command, run as one argument of /bin/bash -c."""

    kind: Literal["command"] = "command"
    command: Annotated[
        str, Field(min_length=1, max_length=131_072, pattern=r"^[^\x00]+$"), AfterValidator(_check_not_blank)
    ]
    """Text of the command."""


class NativeSource(DescribedModel):
    """A file in the scheduler's own format, submitted as written."""

    kind: Literal["native"] = "native"
    path: Path
    """The .sbatch or .yaml file."""


Source = Annotated[
    NotebookSource | ScriptSource | FunctionSource | CommandSource | NativeSource, Field(discriminator="kind")
]
"""Any of the sources, told apart by ``kind``."""


class FilesSpec(DescribedModel):
    """Project files that are included with the code."""

    project: Annotated[bool, option("--project-files/--no-project-files")] = True
    """Include the files of the source's project: tracked and new files in its folder, except those that .gitignore and
    .hyperpodignore exclude."""
    root: Annotated[Path | None, option("--project-root", metavar="DIR")] = None
    """Folder of the project. Default: the folder of the source."""
    include: Annotated[list[str], option("--include", metavar="GLOB", repeat="list")] = Field(default_factory=list)
    """Further files to include, even ignored ones, as patterns relative to the project folder."""
    max_bytes: Annotated[int, Field(ge=0, le=1024**4), NOT_BOOL] = 256 * 1024**2
    """Maximum size of the included files. A larger project is refused."""


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


class Accelerators(DescribedModel):
    """Accelerators on each node."""

    kind: Literal["gpu", "neuron"] = "gpu"
    """Kind of accelerator: GPUs, or the NeuronCores of Trainium and Inferentia."""
    type: Annotated[str, Field(pattern=LABEL)] | None = None
    """Model, such as h100, or MIG profile, if the cluster has several."""
    count: Annotated[int, Field(ge=0, le=1024), NOT_BOOL] = 1
    """Number on each node."""


class Resources(DescribedModel):
    """Number of nodes, and the resources on each node."""

    nodes: Annotated[int, Field(ge=1, le=10_000), NOT_BOOL, option("--nodes", basic=True)] = 1
    """Number of nodes."""
    processes_per_node: Annotated[
        int | None, Field(ge=1, le=1024), NOT_BOOL, option("--processes-per-node", basic=True)
    ] = None
    """Processes (ranks) on each node. Default: one for each accelerator, at least one."""
    gpus_per_node: Annotated[int | None, Field(ge=0, le=1024), NOT_BOOL, option("--gpus-per-node", basic=True)] = None
    """GPUs on each node; for other accelerators set accelerators in --spec."""
    accelerators: Accelerators | None = None
    """Accelerators on each node, with kind and type."""
    cpus: Annotated[int | None, Field(ge=1, le=4096), NOT_BOOL, option("--cpus")] = None
    """CPUs on each node."""
    memory: Annotated[Size | None, option("--memory", metavar="SIZE")] = None
    """Memory on each node, such as 64G."""
    instance_type: Annotated[OneLine | None, option("--instance-type")] = None
    """Instance type to run on, such as ml.p5.48xlarge."""
    instance_group: Annotated[OneLine | None, option("--instance-group")] = None
    """HyperPod instance group to run on."""
    efa: Annotated[int | None, Field(ge=0, le=64), NOT_BOOL] = None
    """EFA interfaces on each node. Default: those of the instance type, if the run requests whole nodes."""

    @model_validator(mode="after")
    def _one_count(self) -> Resources:
        if self.accelerators is not None and self.gpus_per_node is not None:
            is_same_count = self.accelerators.kind == "gpu" and self.accelerators.count == self.gpus_per_node
            if not is_same_count:
                raise ValueError("gpus_per_node and accelerators conflict; set only one")
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
    {"RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
)
"""What every process of a run is given (design: the launcher)."""


def _check_variables(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"'{name[:60]}' is not a valid name of an environment variable")
        if "\0" in value:
            raise ValueError(f"the value of {name} contains a NUL byte")
        if name.startswith("HYPERPOD_"):
            raise ValueError(f"{name}: names that start with HYPERPOD_ are reserved")
        if name in LAUNCHER_VARIABLES:
            raise ValueError(f"the launcher sets {name} for each process")
    return variables


_MAX_SECRET_NAME = 200  # a file is named after it


def _check_secrets(references: dict[str, str]) -> dict[str, str]:
    for name in references:
        if len(name) > _MAX_SECRET_NAME:
            raise ValueError(f"'{name[:60]}...' is longer than {_MAX_SECRET_NAME} characters")
    return _check_variables(references)


EnvironmentCapture = Literal["lock", "requirements", "venv"]


def _check_capture(value: Any) -> Any:
    if value == "conda":  # which older versions sent
        raise PydanticCustomError("conda", "conda environments are not sent any more")
    return value


class Environment(DescribedModel):
    """Environment of the code: interpreter or image, packages, variables, secrets and setup commands."""

    python: Annotated[OneLine | None, option("--python", metavar="PATH", basic=True)] = None
    """Path of the Python interpreter on the nodes. Default: the cluster's."""
    image: Annotated[OneLine | None, option("--image", metavar="REF")] = None
    """Container image, on clusters that run containers."""
    capture: Annotated[EnvironmentCapture | None, BeforeValidator(_check_capture), option("--env-from")] = None
    """Packages that the run brings along: those of the project's uv.lock or requirements.txt, or those of the notebook's Python (venv).
    The first run builds them on the cluster, and later runs with the same packages use that."""
    variables: Annotated[
        dict[str, str], AfterValidator(_check_variables), option("--env", metavar="NAME=VALUE", repeat="map")
    ] = Field(default_factory=dict)
    """Environment variables. The submitter's environment is not inherited."""
    secrets: Annotated[
        dict[str, str], AfterValidator(_check_secrets), option("--secret", metavar="NAME[=REF]", repeat="secrets")
    ] = Field(default_factory=dict)
    """Secrets, by the name of the variable. With a reference, the value is resolved on the cluster. Without one, the value is sent
    as a file, which the launcher deletes after reading it."""
    setup: Annotated[NoNul | None, Field(max_length=65536), option("--setup", metavar="LINES")] = None
    """Shell commands to run on each node before the ranks start, such as module load."""


class SlurmOptions(DescribedModel):
    """Options for Slurm clusters only."""

    flags: Annotated[dict[str, str | int | bool], option("--slurm", metavar="FLAG[=VALUE]", repeat="flags")] = Field(
        default_factory=dict
    )
    """Further sbatch options by their long names, such as constraint=a100. Switches, such as exclusive, need no value."""


class Topology(DescribedModel):
    """Topology-aware placement of the pods, if Kueue knows the cluster's topology."""

    level: OneLine
    """Node label of the level in which all pods should fit, such as topology.k8s.aws/network-node-layer-3."""
    mode: Literal["preferred", "required"] = "preferred"
    """required: the run waits until all pods fit. preferred: it does not."""


class KubernetesOptions(DescribedModel):
    """Options for Kubernetes clusters only."""

    kind: Literal["PyTorchJob", "HyperPodPyTorchJob", "TrainJob", "Job"] | None = None
    """Kind of object to create. Default: the best that the cluster supports."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL)] | None = None
    """Namespace. Default: the configured namespace of the cluster."""
    service_account: Annotated[
        str | None, Field(pattern=DNS_SUBDOMAIN), option("--service-account", metavar="NAME")
    ] = None
    """Kubernetes service account of the pods, whose AWS role they get (EKS Pod Identity, IRSA). Default: the namespace's."""
    topology: Topology | None = None
    """Topology-aware placement of the pods."""
    patch: dict[str, Any] = Field(default_factory=dict)
    """Patch of the manifest: template for each pod, and labels and annotations in metadata. Lists of named items are merged by name."""
    keep_companions: Annotated[bool, option("--keep-companions/--no-keep-companions")] = False
    """When the job is deleted, keep the objects that your manifest defines beside it."""


def _check_run_ids(ids: list[str]) -> list[str]:
    for run_id in ids:
        if not RUN_ID.fullmatch(run_id):
            raise ValueError(f"'{run_id[:60]}' is not a run id")
    return ids


AlarmCode = Literal["nan", "spike", "hang"]
"""Causes of alarms: a loss that is not finite, a loss far above its course, no output and no progress."""

_WEBHOOK = re.compile(r"https?://(?!\S*\$\{)[^\s/]+(?:/\S*)?|\$\{([A-Za-z_]\w*)\}")
"""A URL, or the name of the secret that has it."""


def _check_webhook(url: str | None) -> str | None:
    if url is not None and not _WEBHOOK.fullmatch(url):
        raise ValueError("a webhook is a URL that begins with https:// or http://, or ${NAME} for the secret NAME")
    return url


class AlarmOptions(DescribedModel):
    """What an alarm does, other than being shown."""

    stop_on: Annotated[list[AlarmCode], option("--stop-on", metavar="ALARM", repeat="list")] = Field(
        default_factory=list
    )
    """End the attempt as failed on these alarms: nan, spike, hang. With max_restarts, it starts again."""
    webhook: Annotated[OneLine | None, AfterValidator(_check_webhook), option("--alarm-webhook", metavar="URL")] = None
    """URL to which the node posts alarms and the end of the run, as JSON."""


class MlflowOptions(DescribedModel):
    """Where the run is recorded in MLflow. Values that are not set come from the configuration."""

    tracking_uri: Annotated[MlflowUri | None, option("--mlflow", metavar="URI")] = None
    """MLflow tracking server: its URL, or the ARN of a tracking server or an MLflow App of SageMaker. none: no server, whatever the configuration says."""
    experiment: Annotated[MlflowName | None, option("--mlflow-experiment", metavar="NAME")] = None
    """Name of the MLflow experiment."""
    run_name: Annotated[MlflowName | None, option("--mlflow-run-name", metavar="NAME")] = None
    """Name of the MLflow run. Default: the name of the run."""

    @property
    def server(self) -> str | None:
        """The tracking server; None if the run has none."""
        return None if self.tracking_uri == NO_MLFLOW else self.tracking_uri


class JobSpec(DescribedModel):
    """One run: its code, resources, launcher and environment."""

    format: Literal[1] = 1
    """Format version of this document."""
    name: Annotated[str | None, Field(pattern=NAME), option("--name", basic=True)] = None
    """Display name. Default: taken from the source."""
    source: Source
    """What to run."""
    args: Annotated[list[NoNul], Field(max_length=10_000)] = Field(default_factory=list)
    """Arguments of the script, notebook or command."""
    files: FilesSpec = Field(default_factory=FilesSpec)
    """Project files to include."""
    resources: Resources = Field(default_factory=Resources)
    """Nodes, processes, accelerators, memory."""
    launcher: Annotated[LauncherKind | None, option("--launcher", basic=True)] = None
    """Program that starts the processes. Default: none for a command, torchrun for several processes, otherwise python."""
    environment: Environment = Field(default_factory=Environment)
    """Interpreter or image, variables, secrets, setup commands."""
    queue: Annotated[OneLine | None, option("--queue", basic=True)] = None
    """Queue to submit to (Slurm partition or Kueue local queue)."""
    account: Annotated[OneLine | None, option("--account")] = None
    """Account to charge."""
    qos: Annotated[OneLine | None, option("--qos")] = None
    """Quality of service, if the cluster supports it."""
    priority: Annotated[OneLine | None, option("--priority")] = None
    """Priority class, if the cluster supports it."""
    time_limit: Annotated[Duration | None, option("--time-limit", metavar="TIME", basic=True)] = None
    """Time limit, such as 2h. The run is ended when it is reached."""
    max_restarts: Annotated[int, Field(ge=0, le=100), NOT_BOOL, option("--max-restarts")] = 0
    """Maximum number of further attempts after a failure."""
    auto_resume: Annotated[bool | None, option("--auto-resume/--no-auto-resume")] = None
    """HyperPod auto-resume after a node failure. Default: on, if the cluster supports it."""
    stop_grace: Annotated[Duration, option("--stop-grace", metavar="TIME")] = 10
    """Seconds between SIGTERM and SIGKILL when the run is ended."""
    forward_signals: Literal["caught", "always", "never"] = "caught"
    """When a rank gets the warning signal before the time limit: only if it catches the signal, always, or never."""
    after: Annotated[list[str], AfterValidator(_check_run_ids), option("--after", metavar="RUN", repeat="list")] = (
        Field(default_factory=list)
    )
    """Runs that must succeed before this one starts."""
    array: Annotated[ArrayText | None, option("--array", metavar="INDICES")] = None
    """Indices of an array of child runs, such as 0-9%4. The number after % limits how many run at once."""
    metric_patterns: Annotated[MetricPatterns, option("--metric", metavar="NAME=REGEX", repeat="map")] = Field(
        default_factory=dict
    )
    """Further numbers to read from the output, by name: a regular expression with one group, which is the number."""
    alarms: AlarmOptions = Field(default_factory=AlarmOptions)
    """What alarms do, other than being shown."""
    mlflow: MlflowOptions = Field(default_factory=MlflowOptions)
    """Where the run is recorded in MLflow."""
    slurm: SlurmOptions = Field(default_factory=SlurmOptions)
    """Options for Slurm clusters only."""
    kubernetes: KubernetesOptions = Field(default_factory=KubernetesOptions)
    """Options for Kubernetes clusters only."""

    @model_validator(mode="after")
    def _has_webhook(self) -> JobSpec:
        reference = _WEBHOOK.fullmatch(self.alarms.webhook or "")
        if reference and reference[1] and reference[1] not in self.environment.secrets:
            raise ValueError(
                f"the webhook is the secret {reference[1]}, which the run does not have: add --secret {reference[1]}"
            )
        return self

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
    "AlarmCode",
    "AlarmOptions",
    "Environment",
    "EnvironmentCapture",
    "FilesSpec",
    "JobSpec",
    "KubernetesOptions",
    "LauncherKind",
    "MlflowOptions",
    "Resources",
    "SlurmOptions",
    "Source",
    "Topology",
]
