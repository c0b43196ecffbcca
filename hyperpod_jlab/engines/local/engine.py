"""The embedded cluster as an `Orchestrator`."""

from __future__ import annotations

import asyncio
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hyperpod_jlab.core.check import Step
from hyperpod_jlab.core.cluster import Change, Cluster, Job, JobResult, Node, Queue, WaitReason
from hyperpod_jlab.core.config import LocalCluster
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, UnsupportedError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.node_actions import DrainKind
from hyperpod_jlab.core.records import ActionKind, Observation
from hyperpod_jlab.core.run import Usage
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.local import machine, preflight
from hyperpod_jlab.engines.local import observe as tables
from hyperpod_jlab.engines.local.attempt import end_processes, tell_to_cancel
from hyperpod_jlab.engines.local.board import Board, default_folder
from hyperpod_jlab.engines.local.machine import scheduler_id
from hyperpod_jlab.engines.local.observe import ahead_of, observe
from hyperpod_jlab.engines.local.preflight import render
from hyperpod_jlab.engines.local.spawn import spawn_supervisor
from hyperpod_jlab.engines.protocol import (
    Capabilities,
    ForeignJob,
    PortStream,
    Rendered,
    RenderInput,
    Shell,
    Taken,
)
from hyperpod_jlab.engines.repairs import journal_usage
from hyperpod_jlab.storage.files import life
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader


class LocalOrchestrator:
    """Runs as process groups on this machine, some at a time, each looked after by a detached supervisor."""

    kind = "local"
    capabilities = Capabilities(
        hold=True, requeue=True, arrays=True, dependencies=True, queues=False
    )

    def __init__(
        self, name: str, config: LocalCluster, partition: Partition, *, folder: Path | None = None
    ) -> None:
        self.name = name
        self.paths = PathMap.of(str(partition.root))
        self._partition = partition
        self._config = config
        self._folder = folder
        self._slots = config.slots or machine.default_slots()

    def python(self, spec: JobSpec) -> str | None:
        """The spec's interpreter, the cluster's, or the one that hyperpod_jlab is installed for."""
        return spec.environment.python or self._config.python or sys.executable

    def render(self, given: RenderInput) -> Rendered:
        """The run's document."""
        return render(given)

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """What this machine has to say about a spec."""
        return await asyncio.to_thread(preflight.findings, spec, self.python(spec) or "python3")

    async def verdict(self, given: RenderInput, rendered: Rendered) -> list[Finding]:
        """Nothing before it is sent."""
        del given, rendered
        return []

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """Version of the run's interpreter."""
        python = self.python(spec) or "python3"
        return (await asyncio.to_thread(preflight.interpreter, python)).version

    async def time_limit(self, spec: JobSpec) -> int | None:
        """None: without a limit of its own a run has none."""
        del spec
        return None

    async def job_uid(self) -> int | None:
        """None: jobs run as this very user."""
        return None

    async def choices(self) -> dict[str, list[str]]:
        """None: it has neither queues nor accounts."""
        return {}

    async def submit(self, bundle: BundleReader) -> Taken:
        """Start the run's supervisor; a second one for the same run ends by itself."""
        await asyncio.to_thread(self._spawn, bundle)
        return Taken(scheduler_id(bundle.run_id))

    async def find(self, bundle: BundleReader) -> Taken | None:
        """Whether this machine has taken the run: it is on the board, or its supervisor has left a word."""
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return None
        entries = await asyncio.to_thread(self._board().entries)
        known = any(entry.bundle == str(bundle.records) for entry in entries)
        records = await asyncio.to_thread(bundle.read)
        if known or records.owner is not None:
            return Taken(scheduler_id(bundle.run_id))
        return None

    async def cancel(self, bundle: BundleReader) -> None:
        """The supervisor sees the journal by itself; when it is dead, its processes are ended here.

        It is told by a signal when the journal could not be written (a full partition).
        """
        await asyncio.to_thread(bundle.check_own, "cancel")
        records = await asyncio.to_thread(bundle.read)
        if records.owner is None:
            return
        seen = life(records.owner)
        if seen == "dead":
            grace = bundle.spec().stop_grace
            await asyncio.to_thread(end_processes, bundle.records, grace)
        elif seen == "alive" and not any(done.action == "cancel" for done in records.actions):
            tell_to_cancel(records.owner.pid)

    async def hold(self, bundle: BundleReader) -> None:
        """The supervisor sees the journal by itself."""

    async def release(self, bundle: BundleReader) -> None:
        """The supervisor sees the journal by itself."""

    async def requeue(self, bundle: BundleReader) -> None:
        """The supervisor sees the journal by itself."""

    async def change(self, bundle: BundleReader, change: Change) -> None:
        """Not here.

        Raises:
            UnsupportedError: Always: a run here has no queue, and keeps its time limit.
        """
        del bundle, change
        raise UnsupportedError(
            f"{self.kind} clusters have no queues, and a run's time limit stays as it was sent"
        )

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """There are no jobs here but runs, which are acted on as such."""
        del action, change
        return [
            JobResult(job, NotFoundError(f"there is no job {job[:60]}", code="no_such_job"))
            for job in jobs
        ]

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Not offered: the one node is this machine."""
        del reason
        return dict.fromkeys(nodes, UnsupportedError(f"local clusters cannot {action} nodes"))

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """What can be seen of these runs' supervisors: gone ones are said to be lost."""
        return await asyncio.to_thread(observe, bundles, time.time())

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """The nodes write their records themselves."""
        del bundle, seconds
        return False

    async def cluster(self) -> Cluster:
        """This machine in one line."""
        entries = await asyncio.to_thread(self._board().entries)
        gpus = machine.gpus()
        return Cluster(
            name=self.name,
            orchestrator=self.kind,
            default=False,
            state="up",
            nodes=1,
            running=sum(entry.state == "running" for entry in entries),
            waiting=sum(entry.state in {"waiting", "held"} for entry in entries),
            detail={"host": platform.node(), "slots": self._slots, "gpus": len(gpus)},
        )

    async def nodes(self) -> list[Node]:
        """This machine as a node."""
        entries = await asyncio.to_thread(self._board().entries)
        return [await asyncio.to_thread(tables.node_row, entries)]

    async def queues(self) -> list[Queue]:
        """The one line in which runs wait for a slot."""
        entries = await asyncio.to_thread(self._board().entries)
        return [tables.queue_row(self.name, self._slots, entries)]

    async def jobs(self) -> list[Job]:
        """All runs on this machine's board."""
        entries = await asyncio.to_thread(self._board().entries)
        return tables.job_rows(entries)

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """The supervisor's own word, and the run's place in the line."""
        entries = await asyncio.to_thread(self._board().entries)
        records = await asyncio.to_thread(bundle.read)
        word = max(records.observations, key=lambda seen: seen.time, default=None)
        ahead = ahead_of(entries, bundle.run_id)
        return WaitReason(
            run_id=bundle.run_id,
            reason=word.reason if word else None,
            reason_code=word.reason_code if word else None,
            position=len(ahead) + 1,
            ahead=tuple(entry.run_id for entry in ahead),
        )

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """What an ended run used, by its records."""
        return await asyncio.to_thread(journal_usage, bundle)

    async def open_port(self, bundle: BundleReader, node: int, port: int) -> PortStream:
        """Not offered."""
        raise UnsupportedError(
            "runs of this machine have their ports here",
            hint="it is this machine: open the port itself",
            detail={"run_id": bundle.run_id, "node": node, "port": port},
        )

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """None."""
        del bundle
        return []

    async def foreign_job(self, job: str) -> ForeignJob:
        """There are no jobs here but ours."""
        raise UnsupportedError(
            "local clusters have no jobs from elsewhere to adopt", detail={"job": job[:60]}
        )

    async def adopted(self, bundle: BundleReader) -> None:
        """There are no jobs here but ours."""
        raise UnsupportedError(
            "local clusters have no jobs from elsewhere to adopt", detail={"run_id": bundle.run_id}
        )

    def attend(self) -> None:
        """Looking costs nothing here."""

    def checkup(self) -> list[Step]:
        """None: what it needs is looked at with the installation."""
        return []

    async def close(self) -> None:
        """Nothing is held open."""

    def _board(self) -> Board:
        return Board(self._folder or default_folder(), slots=self._slots, gpus=len(machine.gpus()))

    def _spawn(self, bundle: BundleReader) -> None:
        spawn_supervisor(bundle, folder=self._folder or default_folder(), slots=self._slots)
