"""What an orchestrator can be asked, the same for all of them.

What an engine cannot do is said in its `Capabilities` before the user tries, and raised as `UnsupportedError` when tried all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hyperpod_jlab.core.check import Step
from hyperpod_jlab.core.cluster import (
    Change,
    ChangeField,
    Cluster,
    Job,
    JobResult,
    Node,
    Queue,
    WaitReason,
)
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.node_actions import DrainKind
from hyperpod_jlab.core.records import ActionKind, Observation
from hyperpod_jlab.core.run import Usage
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.launch import Seal
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader

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


@dataclass(frozen=True)
class Capabilities:
    """What an engine offers beyond submit, cancel and logs."""

    hold: bool = False
    requeue: bool = False
    changes: tuple[ChangeField, ...] = ()
    """What of a run or job that waits or runs can be changed."""
    acts_by_id: bool = False
    """Whether what is done to a job by its scheduler's id is done to its run: many in one request."""
    arrays: bool = False
    dependencies: bool = False
    dependencies_by_id: bool = False
    """Whether the scheduler waits for earlier runs by its own ids of them; else the engine reads their records itself."""
    adopt: bool = False
    queues: bool = False
    ports: bool = False
    """Whether ports of a run's nodes can be reached while it runs."""
    drain: bool = False
    """Whether nodes can be drained and resumed, by those who may."""


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
    seal: Seal
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
class Taken:
    """The engine has taken a run."""

    scheduler_id: str


@dataclass(frozen=True)
class ForeignJob:
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


@runtime_checkable
class Orchestrator(Protocol):
    """One cluster's scheduler. All waiting is async; `render` alone is a pure function.

    Every method may raise `UnreachableError` when the cluster does not answer and `DeniedError` when it refuses this user.
    """

    name: str
    kind: str
    capabilities: Capabilities
    paths: PathMap

    def python(self, spec: JobSpec) -> str | None:
        """The interpreter on the far side for a spec, or None for the node's own."""
        ...

    def render(self, given: RenderInput) -> Rendered:
        """The script or manifest for a spec: same input, same bytes."""
        ...

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """What the cluster has to say about a spec before it is sent."""
        ...

    async def verdict(self, given: RenderInput, rendered: Rendered) -> list[Finding]:
        """What the scheduler itself says of a user's own file as it will be given it; nothing where it only does so when it is sent."""
        ...

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """Major and minor version of the far side's interpreter, or None when it cannot be known beforehand."""
        ...

    async def time_limit(self, spec: JobSpec) -> int | None:
        """Seconds that the cluster gives a run without a limit of its own; None when that is up to it, or unknown."""
        ...

    async def choices(self) -> dict[str, list[str]]:
        """Names that this user may give in a spec, by its field: ``queue``, ``account``, ``qos``. Fields without a known list are left out."""
        ...

    async def job_uid(self) -> int | None:
        """The user number as which jobs use the storage partition, when it is another than this process's; it is let into the run's bundle."""
        ...

    async def submit(self, bundle: BundleReader) -> Taken:
        """Hand a committed bundle to the scheduler. Handing the same one again must not run it twice.

        `StorageError`, like `RefusedError`, says that the scheduler surely does not have it.
        """
        ...

    async def find(self, bundle: BundleReader) -> Taken | None:
        """The scheduler's job of a run, found by the run's id: for a submit whose answer was lost."""
        ...

    async def cancel(self, bundle: BundleReader) -> None:
        """End a run, or take it out of the queue. The journal already holds the user's action."""
        ...

    async def hold(self, bundle: BundleReader) -> None:
        """Keep a waiting run from starting."""
        ...

    async def release(self, bundle: BundleReader) -> None:
        """Let a held run start."""
        ...

    async def requeue(self, bundle: BundleReader) -> None:
        """End the running attempt and open the next."""
        ...

    async def change(self, bundle: BundleReader, change: Change) -> None:
        """Give a waiting or running run another time limit or queue."""
        ...

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Do to jobs of the queue, whoever sent them, what is done to runs: one result each, in their order.

        Args:
            action: What to do.
            jobs: The scheduler's ids, as `jobs` gives them.
            change: With the action ``change``: what to change.
        """
        ...

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Drain or resume nodes.

        Args:
            action: What to do.
            nodes: The scheduler's names of them, as `nodes` gives them.
            reason: With ``drain``: why, in one line.

        Returns:
            By the node's name: None where it was done, else why not.
        """
        ...

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """The scheduler's newest word on these runs, by run id, in one cheap listing."""
        ...

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """Bring a run's records and logs up to what its nodes have said by now, where they cannot write them into the bundle themselves.

        Args:
            bundle: The run.
            seconds: How long that may take; what is left then comes later.

        Returns:
            Whether there may be news in the bundle.
        """
        ...

    async def cluster(self) -> Cluster:
        """The cluster in one line."""
        ...

    async def nodes(self) -> list[Node]:
        """All nodes."""
        ...

    async def queues(self) -> list[Queue]:
        """All queues that this user may see."""
        ...

    async def jobs(self) -> list[Job]:
        """The queue of all users."""
        ...

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        ...

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """What an ended run used; None while the scheduler has yet to say it, so that its own records have to do for now."""
        ...

    async def open_port(self, bundle: BundleReader, node: int, port: int) -> PortStream:
        """Connect to a port of a running run's node.

        Raises:
            ConflictError: Nothing of the run runs there now.
            NotFoundError: The run has no such node.
        """
        ...

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """How to open a shell on the run's nodes, those that run; none where that is not known."""
        ...

    async def foreign_job(self, job: str) -> ForeignJob:
        """A job that was sent elsewhere, by the id that the user names."""
        ...

    async def adopted(self, bundle: BundleReader) -> None:
        """Mark the job of a bundle that was made for it as ours, where that is possible."""
        ...

    def attend(self) -> None:
        """Somebody looks at runs or clusters now. A server says so at each request; while it is silent, nobody need be asked for the state of things."""
        ...

    def checkup(self) -> list[Step]:
        """The steps of ``hpj doctor`` on the way to this cluster, in order; what each is about is the cluster's name."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
