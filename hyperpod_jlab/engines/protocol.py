"""What an engine is: one protocol for each concern, and the class that holds them together. See docs/add-an-engine.md.

Two concerns are required: `Submitting` and `Observing`. An engine has the others only where its scheduler can do them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from hyperpod_jlab.core.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hyperpod_jlab.core.check import CheckStep
    from hyperpod_jlab.core.cluster import ChangeField, Cluster, Job, Node, Queue, WaitReason
    from hyperpod_jlab.core.errors import HyperpodError
    from hyperpod_jlab.core.finding import Finding
    from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
    from hyperpod_jlab.core.node_actions import DrainKind
    from hyperpod_jlab.core.records import Observation
    from hyperpod_jlab.core.scheduler import Scheduler
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.core.usage import Usage
    from hyperpod_jlab.engines.launch import GuardPolicy
    from hyperpod_jlab.engines.remote_task import RemoteTasks
    from hyperpod_jlab.storage.partition import PathMap
    from hyperpod_jlab.storage.records import BundleReader

Concern = TypeVar("Concern")


@dataclass(frozen=True)
class NativeFile:
    """A file in the scheduler's own form, which is sent as it was written.

    Attributes:
        path: Its place in the bundle.
        data: Its bytes.
        cwd: The folder in the bundle in which it runs.
    """

    path: str
    data: bytes
    cwd: str


@dataclass(frozen=True)
class NativeFacts:
    """What such a file says of its run: the name, the queue, the number of nodes (the fewest), the array."""

    name: str | None = None
    queue: str | None = None
    nodes: int = 1
    array: str | None = None


@dataclass(frozen=True)
class RenderInput:
    """All that rendering depends on.

    Attributes:
        run_id: The run's id.
        name: The run's name for people.
        spec: The spec.
        bundle: Path of the bundle relative to the partition.
        paths: The partition here and there.
        python: Interpreter on the far side, or None for the node's own.
        seal: Which launcher the job may start, and in whose bundle.
        time_limit: Seconds that the cluster gives a run without a limit of its own, or None.
        after: The scheduler's ids of those runs before this one that have not succeeded yet.
        native: The file to send as it is, for a native source.
        user: Who submits, for those who look at the cluster.
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
    """What the scheduler will be given: the file's name in the bundle, its text, and its language for the preview; of a native file what it says.

    `kind` is the kind of object that the run becomes, such as ``PyTorchJob``, where the scheduler has several.
    """

    filename: str
    text: str
    language: str
    facts: NativeFacts | None = None
    kind: str | None = None


@dataclass(frozen=True)
class SubmitResult:
    """The engine has taken a run."""

    scheduler_id: str


@dataclass(frozen=True)
class ExternalJob:
    """A job of this user that was sent elsewhere, as it can be adopted.

    Attributes:
        scheduler_id: Its id.
        facts: What is known of it.
        submitted_at: When it was sent (Unix seconds), as far as known.
        run_id: The run that it says to belong to, or None.
        path: What stands for the source's path.
        script: Its script, as place in the bundle and bytes, or None.
        files: Further files of the bundle.
        kind: The kind of object that it is, where the scheduler has several.
    """

    scheduler_id: str
    facts: NativeFacts
    submitted_at: float | None
    run_id: str | None
    path: str
    script: tuple[str, bytes] | None
    files: Mapping[str, bytes]
    kind: str | None = None


class Submitting(Protocol):
    """Sending runs. Every engine does this."""

    @abstractmethod
    def python(self, spec: JobSpec) -> str | None:
        """The interpreter on the far side for a spec, or None for the node's own."""

    @abstractmethod
    def render(self, render_input: RenderInput) -> Rendered:
        """The script or manifest for a spec. A pure function: same input, same bytes."""

    @abstractmethod
    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """What the cluster has to say about a spec before it is sent."""

    @abstractmethod
    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Hand a committed bundle to the scheduler. Handing the same one again must not run it twice.

        `StorageError`, like `RefusedError`, says that the scheduler surely does not have it.
        """

    @abstractmethod
    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """The scheduler's job of a run, found by the run's id: for a submit whose answer was lost."""


class Observing(Protocol):
    """Telling what becomes of runs. Every engine does this."""

    @abstractmethod
    async def cluster(self) -> Cluster:
        """The cluster in one line."""

    @abstractmethod
    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """The scheduler's newest state of these runs, by run id, in one cheap listing."""


class Actions(Protocol):
    """Acting on runs: cancel, hold, release, requeue, change."""

    @property
    def supported(self) -> tuple[ActionKind, ...]:
        """The actions that the scheduler can do."""
        ...

    @property
    def changes(self) -> tuple[ChangeField, ...]:
        """What the action ``change`` can change of a run that waits or runs."""
        ...

    async def act(
        self, action: ActionKind, bundle: BundleReader, change: Change | None = None
    ) -> None:
        """Do it. The journal already holds the user's action.

        Args:
            action: One of `offered`.
            bundle: The run.
            change: With the action ``change``: what to change.
        """
        ...


class JobActions(Protocol):
    """Acting on jobs of the queue by the scheduler's ids, whoever sent them."""

    @property
    def covers_runs(self) -> bool:
        """Whether an action on a job is also right for the run that the job is; then many runs need one request."""
        ...

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Do it to each: one result each, in their order.

        Args:
            action: What to do.
            jobs: The scheduler's ids, as `Tables.jobs` gives them.
            change: With the action ``change``: what to change.
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
    """Names to choose from."""

    async def choices(self) -> dict[str, list[str]]:
        """Names that this user may give in a spec, by its field: ``queue``, ``account``, ``qos``. Fields without a known list are left out."""
        ...


class TimeLimits(Protocol):
    """Time limits that the cluster sets by itself."""

    async def time_limit(self, spec: JobSpec) -> int | None:
        """Seconds that the cluster gives a run without a limit of its own; None when that is not known."""
        ...


class Interpreters(Protocol):
    """The interpreter on the far side, where it can be asked before the run."""

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """Its major and minor version, or None when it does not tell."""
        ...


class NativeCheck(Protocol):
    """The scheduler's check of a file in its own form (sbatch script, manifest) before it is sent."""

    async def dry_run(self, render_input: RenderInput, rendered: Rendered) -> list[Finding]:
        """What the scheduler says of the file."""
        ...


class JobUser(Protocol):
    """Jobs that may run under another user number than this process."""

    async def job_uid(self) -> int | None:
        """The number, when it differs from this process's; that user is let into the run's bundle."""
        ...


class WaitExplainer(Protocol):
    """Reasons why runs wait."""

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        ...


class Accounting(Protocol):
    """What runs used, beyond their own records."""

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """What an ended run used; None while the scheduler has yet to say it, so that the run's own records are used for now."""
        ...


class RemoteRecords(Protocol):
    """Records and logs that nodes cannot write into the bundle themselves and that are fetched."""

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """Bring a run's records and logs up to date.

        Args:
            bundle: The run.
            seconds: How long that may take; what is left then comes later.

        Returns:
            Whether there may be news in the bundle.
        """
        ...


class Ports(Protocol):
    """Ways into a run's nodes while it runs."""

    async def open(self, bundle: BundleReader, node: int, port: int) -> PortStream:
        """Connect to a port of a running run's node.

        Raises:
            ConflictError: Nothing of the run runs there now.
            NotFoundError: The run has no such node.
        """
        ...

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """How to open a shell on the run's nodes that run."""
        ...


class NodeControl(Protocol):
    """Draining and resuming nodes, by those who may."""

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Drain or resume nodes.

        Args:
            action: What to do.
            nodes: The scheduler's names of them, as `Tables.nodes` gives them.
            reason: With ``drain``: why, in one line.

        Returns:
            By the node's name: None where it was done, else why not.
        """
        ...


class Adoption(Protocol):
    """Jobs of this user that were sent elsewhere and can become runs."""

    async def foreign_job(self, job: str) -> ExternalJob:
        """Such a job, by the id that the user names."""
        ...

    async def adopted(self, bundle: BundleReader) -> None:
        """Mark the job of a bundle that was made for it as ours, where that is possible."""
        ...


class Checkup(Protocol):
    """The checks of ``hpj doctor``."""

    def steps(self) -> list[CheckStep]:
        """The steps on the way to this cluster, in order; the subject of each is the cluster's name."""
        ...


class Polling(Protocol):
    """Polling that stops while nobody looks."""

    def mark_active(self) -> None:
        """Somebody looks at runs or clusters now. A server says so at each request."""
        ...


class Orchestrator(Submitting, Observing, ABC):
    """The engine of one cluster: it sends runs and observes them, and has those of the other concerns that its scheduler can do.

    An engine sets the attributes and overrides the properties of the concerns that it has; the others stay None. Faces hide or refuse what is None.
    All waiting is async. Every method may raise `UnreachableError` when the cluster does not answer and `DeniedError` when it refuses this user.

    Attributes:
        name: The cluster's name in the configuration.
        scheduler: What it schedules with; its name is `orchestrator` in the configuration.
        paths: The storage partition here and there.
        waits_by_id: Whether the scheduler waits for earlier runs by its own ids of them; else the engine reads their records itself.
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
    ports: Ports | None = None

    # Properties, so that an engine need not import what no command asks for.

    @property
    def accounting(self) -> Accounting | None:
        """What runs used."""
        return None

    @property
    def remote_records(self) -> RemoteRecords | None:
        """Records that are fetched."""
        return None

    @property
    def polling(self) -> Polling | None:
        """Polling that stops while nobody looks."""
        return None

    @property
    def actions(self) -> Actions | None:
        """Acting on runs."""
        return None

    @property
    def job_actions(self) -> JobActions | None:
        """Acting on jobs."""
        return None

    @property
    def adoption(self) -> Adoption | None:
        """Taking in jobs from elsewhere."""
        return None

    @property
    def tables(self) -> Tables | None:
        """Nodes, queues and jobs."""
        return None

    @property
    def node_control(self) -> NodeControl | None:
        """Draining and resuming nodes."""
        return None

    @property
    def remote_tasks(self) -> RemoteTasks | None:
        """Tasks of administrators."""
        return None

    @property
    def checkup(self) -> Checkup | None:
        """The checks of ``hpj doctor``."""
        return None

    @property
    def kind(self) -> str:
        """The engine's name."""
        return self.scheduler.name

    async def close(self) -> None:
        """Give back connections."""
        return


def require(concern: Concern | None, engine: Orchestrator, missing: str) -> Concern:
    """A concern of an engine that somebody needs.

    Args:
        concern: An attribute of the engine.
        engine: The engine.
        missing: What its clusters cannot do, for the error, such as ``cannot drain nodes``.

    Raises:
        UnsupportedError: The engine does not have it.
    """
    if concern is None:
        raise UnsupportedError(f"{engine.kind} clusters {missing}")
    return concern


def require_tables(engine: Orchestrator) -> Tables:
    """The tables of an engine.

    Raises:
        UnsupportedError: It has none.
    """
    return require(engine.tables, engine, "have no tables of nodes, queues and jobs")


# --------------------------------------------------------------------------------------------------
# Ways into a run's nodes while it runs: a port of one, and a shell.


class PortStream(Protocol):
    """One connection to a port of a run's node: bytes both ways."""

    @property
    def alive(self) -> bool:
        """Whether it is still open and nothing waits to be read, as far as is known here."""
        ...

    async def read(self, limit: int = 65_536) -> bytes:
        """The next bytes, at most `limit`; ``b""`` at the end.

        Raises:
            RefusedError: Nothing listens there.
            UnreachableError: The connection was cut.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            UnreachableError: The other side has closed the connection.
        """
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


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
