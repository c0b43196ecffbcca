"""What an orchestrator can be asked, the same for all of them.

What an engine cannot do is said in its `Capabilities` before the user tries, and raised as `UnsupportedError` when tried all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hyperpod_jlab.model.cluster import Cluster, Job, Node, Queue, WaitReason
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.translation import PathMap


@dataclass(frozen=True)
class Capabilities:
    """What an engine offers beyond submit, cancel and logs."""

    hold: bool = False
    requeue: bool = False
    arrays: bool = False
    dependencies: bool = False
    images: bool = False
    native_files: bool = False
    adopt: bool = False
    queues: bool = False


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
    """

    run_id: str
    name: str
    spec: JobSpec
    bundle: str
    paths: PathMap
    python: str | None


@dataclass(frozen=True)
class Rendered:
    """What the scheduler will be given: the file's name in the bundle, its text, and its language for the preview."""

    filename: str
    text: str
    language: str


@dataclass(frozen=True)
class Taken:
    """The engine has taken a run."""

    scheduler_id: str


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

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """Major and minor version of the far side's interpreter, or None when it cannot be known beforehand."""
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

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """The scheduler's newest word on these runs, by run id, in one cheap listing."""
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

    def log_sources(self, bundle: BundleReader) -> Sequence[Any] | None:
        """The run's log sources, or None when the bundle's own files are the record."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
