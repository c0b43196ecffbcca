"""The engine interface: one protocol for each concern, and the class that combines them. See docs/add-an-engine.md.

Two concerns are required: `Submitting` and `Observing`. An engine has the others only if its
scheduler supports them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from hyperpod_jlab.core.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from hyperpod_jlab.core.allowance import Allowance
    from hyperpod_jlab.core.check import CheckStep
    from hyperpod_jlab.core.cluster import ChangeField, Cluster, Job, Node, Queue, WaitReason
    from hyperpod_jlab.core.cost import Execution
    from hyperpod_jlab.core.errors import HyperpodError
    from hyperpod_jlab.core.finding import Finding
    from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
    from hyperpod_jlab.core.node_actions import DrainKind
    from hyperpod_jlab.core.records import Observation
    from hyperpod_jlab.core.scheduler import Scheduler
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.core.usage import Usage
    from hyperpod_jlab.engines.forwarding import LocalEnd
    from hyperpod_jlab.engines.launch import GuardPolicy
    from hyperpod_jlab.engines.remote_task import RemoteTasks
    from hyperpod_jlab.storage.partition import PathMap
    from hyperpod_jlab.storage.records import BundleReader

Concern = TypeVar("Concern")


@dataclass(frozen=True)
class NativeFile:
    """A file in the scheduler's own format, which is submitted unchanged.

    Attributes:
        path: Its path in the bundle.
        data: Its bytes.
        cwd: The folder in the bundle in which it runs.
    """

    path: str
    data: bytes
    cwd: str


@dataclass(frozen=True)
class NativeFacts:
    """What such a file says about its run.

    Attributes:
        name: Its name.
        queue: Its queue.
        nodes: The (minimum) number of nodes.
        array: The array.
        gpus_per_node: GPUs, or other accelerators, on each node; None: not known.
        time_limit: The time limit in seconds; None: the file has none.
    """

    name: str | None = None
    queue: str | None = None
    nodes: int = 1
    array: str | None = None
    gpus_per_node: int | None = None
    time_limit: int | None = None


@dataclass(frozen=True)
class RenderInput:
    """The complete input of rendering.

    Attributes:
        run_id: The run's id.
        name: The run's display name.
        spec: The spec.
        bundle: Path of the bundle relative to the partition.
        paths: The partition's paths on this machine and on the nodes.
        python: The interpreter on the nodes, or None for the nodes' own.
        guard_policy: Which launcher the job may start, and whose bundle it must be in.
        time_limit: The spec's time limit in seconds, else the cluster's default; None if there is
            none.
        after: The scheduler's ids of this run's dependencies that have not succeeded yet.
        native: The file to submit unchanged, for a native source.
        user: The submitting user, shown to the cluster's other users.
    """

    run_id: str
    name: str
    spec: JobSpec
    bundle: str
    paths: PathMap
    python: str | None
    guard_policy: GuardPolicy
    time_limit: int | None = None
    after: tuple[str, ...] = ()
    native: NativeFile | None = None
    user: str | None = None


@dataclass(frozen=True)
class Rendered:
    """The scheduler's input: the file's name in the bundle, its text, its language for the preview, and the facts of a native file.

    `kind` is the kind of object that the run becomes, such as ``PyTorchJob``, if the scheduler has
    several.
    """

    filename: str
    text: str
    language: str
    facts: NativeFacts | None = None
    kind: str | None = None


@dataclass(frozen=True)
class SubmitResult:
    """The result of a submit that the scheduler accepted."""

    scheduler_id: str


class Submitting(Protocol):
    """Submits runs. Required for every engine."""

    @abstractmethod
    def python(self, spec: JobSpec) -> str | None:
        """The interpreter on the nodes for a spec, or None for the nodes' own."""

    @abstractmethod
    def render(self, render_input: RenderInput) -> Rendered:
        """The script or manifest for a spec. Pure: same input, same bytes."""

    @abstractmethod
    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """The cluster's findings about a spec before its submit."""

    @abstractmethod
    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Submit a committed bundle to the scheduler. Submitting the same one again must not run it twice.

        `StorageError` and `RefusedError` mean that the scheduler certainly did not accept it.
        """

    @abstractmethod
    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """The scheduler's job of a run, found by the run's id: for a submit whose response was lost."""


class Observing(Protocol):
    """Observes runs. Required for every engine."""

    @abstractmethod
    async def cluster(self) -> Cluster:
        """The cluster's summary."""

    @abstractmethod
    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """The scheduler's current state of these runs, by run id, from one cheap listing."""


class Actions(Protocol):
    """Actions on runs: cancel, hold, release, requeue, change."""

    @property
    def supported(self) -> tuple[ActionKind, ...]:
        """The actions that the scheduler supports."""
        ...

    @property
    def changes(self) -> tuple[ChangeField, ...]:
        """What the action ``change`` can change in a waiting or running run."""
        ...

    async def act(self, action: ActionKind, bundle: BundleReader, change: Change | None = None) -> None:
        """Apply an action. The journal already contains it, unless it is a change: that is written afterwards.

        Args:
            action: One of `supported`.
            bundle: The run.
            change: The changes, for the action ``change``.
        """
        ...


class JobActions(Protocol):
    """Actions on jobs of the queue by the scheduler's ids, whoever submitted them."""

    @property
    def covers_runs(self) -> bool:
        """Whether an action on a job is also valid for the job's run, so that many runs need one request."""
        ...

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Apply an action to each job; returns one result for each, in order.

        Args:
            action: The action.
            jobs: The scheduler's ids, from `Tables.jobs`.
            change: The changes, for the action ``change``.
        """
        ...


class Tables(Protocol):
    """The cluster as tables."""

    async def nodes(self) -> list[Node]:
        """All nodes."""
        ...

    async def queues(self) -> list[Queue]:
        """All queues that this user may see."""
        ...

    async def jobs(self) -> list[Job]:
        """The queue of all users."""
        ...


class Choices(Protocol):
    """Choices for spec fields."""

    async def choices(self) -> dict[str, list[str]]:
        """The names that this user may use in a spec, by field: ``queue``, ``account``, ``qos``. Fields without a known list are left out."""
        ...


class TimeLimits(Protocol):
    """The cluster's default time limits."""

    async def time_limit(self, spec: JobSpec) -> int | None:
        """The default time limit in seconds of a run without one; None when unknown."""
        ...


class Interpreters(Protocol):
    """The interpreter on the nodes, if its version is available before the run."""

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """Its major and minor version, or None when unknown."""
        ...


class NativeCheck(Protocol):
    """The scheduler's check of a file in its own format (sbatch script, manifest) before the submit."""

    async def dry_run(self, render_input: RenderInput, rendered: Rendered) -> list[Finding]:
        """The scheduler's findings about the file."""
        ...


class JobUser(Protocol):
    """Jobs that may run under another uid than this process."""

    async def job_uid(self) -> int | None:
        """The uid, if it differs from this process's; that user gets access to the run's bundle."""
        ...


class WaitExplainer(Protocol):
    """Reasons why runs wait."""

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        ...


class Accounting(Protocol):
    """Resource usage of runs, beyond their own records."""

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """An ended run's usage; None while the scheduler may still change it, so that the run's own records are used meanwhile."""
        ...


class History(Protocol):
    """Jobs of all users from the scheduler's accounting, the ended ones too."""

    def jobs_between(self, begin: float, end: float, user: str | None = None) -> AsyncIterator[list[Job]]:
        """All executions of jobs that ran in a period, as far as this user may see them: each once, the latest end first, in parts of bounded size.

        A requeued job has a row for each execution. A row is `Job` as in `Tables.jobs`, with the
        times of the whole execution, so it may begin before the period and end after it.

        Args:
            begin: The period's begin (Unix seconds).
            end: Its end.
            user: Only this user's jobs.
        """
        ...

    async def executions(self, bundle: BundleReader) -> list[Execution] | None:
        """All executions of a run, oldest first; of an array's child only its own. None if the accounting does not know it (yet)."""
        ...


class Allowances(Protocol):
    """Limits of what this user and its accounts may use over time."""

    async def allowances(self, account: str | None, qos: str | None) -> list[Allowance]:
        """The limits that are set, with their use; empty without any.

        Args:
            account: Only those that its jobs count against; None: those of all of this user's accounts.
            qos: The same for the QoS; None: all that this user may use.
        """
        ...


class RemoteRecords(Protocol):
    """Records and logs that nodes cannot write to the bundle and that must be fetched."""

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """Update a run's records and logs.

        Args:
            bundle: The run.
            seconds: The timeout; the rest follows later.

        Returns:
            Whether the bundle may have changed.
        """
        ...


class Forwarding(Protocol):
    """Ports of a run's nodes on this machine, while it runs."""

    async def forward(self, bundle: BundleReader, node: int, port: int, end: LocalEnd) -> NoReturn:
        """Forward a port of the node with a rank until cancelled.

        Raises:
            InvalidInputError: The local port is not available.
            NotFoundError: The run does not have the node.
            UnreachableError: The connection broke.
        """
        ...


class Shells(Protocol):
    """Shells on a run's nodes while it runs."""

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The shell commands for the run's running nodes."""
        ...


class NodeControl(Protocol):
    """Draining and resuming nodes, for users with the permission."""

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Drain or resume nodes.

        Args:
            action: The action.
            nodes: The nodes' names from `Tables.nodes`.
            reason: The reason in one line, for ``drain``.

        Returns:
            By node name: None on success, else the error.
        """
        ...


class Checkup(Protocol):
    """The checks of ``hpj doctor``."""

    def steps(self) -> list[CheckStep]:
        """The steps for this cluster, in order; the subject of each is the cluster's name."""
        ...


class Polling(Protocol):
    """Polling that stops without active clients."""

    def mark_active(self) -> None:
        """Mark the engine as in use. A server calls this at each request."""
        ...

    def refresh(self) -> None:
        """Invalidate what the scheduler said, because it may have changed: the next read asks again."""
        ...


class Orchestrator(Submitting, Observing, ABC):
    """The engine of one cluster: it submits and observes runs, and implements the other concerns that its scheduler supports.

    An engine sets the attributes and overrides the properties of its concerns; the others stay
    None. Clients hide or reject what is None.
    All waiting is async. Every method may raise `UnreachableError` when the cluster does not answer
    and `DeniedError` when this user lacks the permission.

    Attributes:
        name: The cluster's name in the configuration.
        scheduler: The scheduler; its name is `orchestrator` in the configuration.
        paths: The storage partition's paths on this machine and on the nodes.
        uses_dependency_ids: Whether the scheduler itself waits for dependencies, by its own ids; otherwise
            the engine reads their records.
    """

    name: str
    scheduler: Scheduler
    paths: PathMap
    uses_dependency_ids: bool = False

    choices: Choices | None = None
    time_limits: TimeLimits | None = None
    interpreters: Interpreters | None = None
    native_check: NativeCheck | None = None
    job_user: JobUser | None = None
    wait_explainer: WaitExplainer | None = None
    allowance_limits: Allowances | None = None

    # Properties, so that an engine imports only what a command needs.

    @property
    def accounting(self) -> Accounting | None:
        """Resource usage of runs."""
        return None

    @property
    def history(self) -> History | None:
        """Jobs of all users, the ended ones too."""
        return None

    @property
    def remote_records(self) -> RemoteRecords | None:
        """Records that must be fetched."""
        return None

    @property
    def polling(self) -> Polling | None:
        """Polling that stops without active clients."""
        return None

    @property
    def actions(self) -> Actions | None:
        """Actions on runs."""
        return None

    @property
    def job_actions(self) -> JobActions | None:
        """Actions on jobs."""
        return None

    @property
    def tables(self) -> Tables | None:
        """Nodes, queues and jobs."""
        return None

    @property
    def forwarding(self) -> Forwarding | None:
        """Ports of runs' nodes on this machine."""
        return None

    @property
    def shells(self) -> Shells | None:
        """Shells on runs' nodes."""
        return None

    @property
    def node_control(self) -> NodeControl | None:
        """Draining and resuming nodes."""
        return None

    @property
    def remote_tasks(self) -> RemoteTasks | None:
        """Administrators' tasks."""
        return None

    @property
    def checkup(self) -> Checkup | None:
        """The checks of ``hpj doctor``."""
        return None

    async def identity(self) -> str | None:
        """What tells this cluster from all others, so that two entries of the configuration that reach the same one are known; None if nothing does."""
        return None

    @property
    def kind(self) -> str:
        """The engine's name."""
        return self.scheduler.name

    async def close(self) -> None:
        """Close connections."""
        return


@dataclass(frozen=True)
class Renderer:
    """The part of an engine that writes scripts and manifests. It starts no program and asks no scheduler, so it is safe with a spec that another user wrote.

    Attributes:
        name: The cluster's name in the configuration.
        paths: The storage partition's paths on this machine and on the nodes.
        python: See `Submitting.python`.
        render: See `Submitting.render`.
    """

    name: str
    paths: PathMap
    python: Callable[[JobSpec], str | None]
    render: Callable[[RenderInput], Rendered]

    @classmethod
    def of(cls, engine: Orchestrator) -> Renderer:
        """The renderer of an engine."""
        return cls(engine.name, engine.paths, engine.python, engine.render)


def require(concern: Concern | None, engine: Orchestrator, missing: str) -> Concern:
    """A concern of an engine, or an error if the engine does not have it.

    Args:
        concern: An attribute of the engine.
        engine: The engine.
        missing: What its clusters cannot do, for the message, such as ``cannot drain nodes``.

    Raises:
        UnsupportedError: The engine does not have the concern.
    """
    if concern is None:
        raise UnsupportedError(f"{engine.kind} clusters {missing}")
    return concern


def require_tables(engine: Orchestrator) -> Tables:
    """The tables of an engine.

    Raises:
        UnsupportedError: The engine has no tables.
    """
    return require(engine.tables, engine, "have no tables of nodes, queues and jobs")


@dataclass(frozen=True)
class Shell:
    """How a user opens a shell on one of a run's nodes.

    Attributes:
        node_rank: The node's rank.
        node: The node's name, or None while it has none.
        command: The command to copy, quoted for a shell.
    """

    node_rank: int
    node: str | None
    command: str
