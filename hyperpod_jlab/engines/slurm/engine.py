"""A Slurm cluster as an `Orchestrator`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence

from hyperpod_jlab.core.check import Step
from hyperpod_jlab.core.cluster import Change, Cluster, Job, JobResult, Node, Queue, WaitReason
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InternalError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.node_actions import DrainKind
from hyperpod_jlab.core.records import ActionKind, Observation
from hyperpod_jlab.core.repair import NodeRepair
from hyperpod_jlab.core.run import Usage
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.protocol import (
    Capabilities,
    ForeignJob,
    PortStream,
    Rendered,
    RenderInput,
    Shell,
    Taken,
)
from hyperpod_jlab.engines.repairs import with_repairs
from hyperpod_jlab.engines.slurm.accounting import Accounting, History, ask_details, find_by_folder
from hyperpod_jlab.engines.slurm.actions import Order, give_all, give_to, set_nodes
from hyperpod_jlab.engines.slurm.checkup import SlurmCheckup
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.external_jobs import look_up, mark
from hyperpod_jlab.engines.slurm.facts import Facts
from hyperpod_jlab.engines.slurm.jobs import scheduler_id
from hyperpod_jlab.engines.slurm.native import Sending, native_findings, read_sending, render_native
from hyperpod_jlab.engines.slurm.native_recorder import StandIn, note_files
from hyperpod_jlab.engines.slurm.observe import RunObserver, newest, ordered_repairs
from hyperpod_jlab.engines.slurm.preflight import Place, default_limit, native_verdict, preflight
from hyperpod_jlab.engines.slurm.queue import (
    Pace,
    SharedQueue,
    Snapshot,
    queue_file,
    queue_snapshot,
)
from hyperpod_jlab.engines.slurm.render import read_script, render
from hyperpod_jlab.engines.slurm.ssh import transport_of
from hyperpod_jlab.engines.slurm.tables import IDLE, ClusterView
from hyperpod_jlab.engines.slurm.transport import ANSWER_LOST
from hyperpod_jlab.engines.slurm.waiting import explain
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader


class SlurmOrchestrator:
    """Runs as Slurm jobs."""

    kind = "slurm"
    capabilities = Capabilities(
        hold=True,
        requeue=True,
        changes=("time_limit", "queue"),
        acts_by_id=True,
        arrays=True,
        dependencies=True,
        dependencies_by_id=True,
        queues=True,
        adopt=True,
        drain=True,
    )

    def __init__(self, name: str, config: SlurmCluster, partition: Partition) -> None:
        self.name = name
        self.paths = PathMap.of(str(partition.root), config.storage)
        self._config = config
        self._partition = partition
        self._client = SlurmClient(transport_of(config))
        self._pace = Pace()
        self._mine = SharedQueue(
            lambda: queue_snapshot(self._client.squeue(["--me"])), queue_file("mine", config)
        )
        self._all = SharedQueue(
            lambda: queue_snapshot(self._client.squeue()), queue_file("all", config)
        )
        here = config.transport == "here"
        self._view = ClusterView(self._client, self._all, self._mine, here=here)
        self._history = History(self._client)
        self._accounting = Accounting(self._client)
        self._facts = Facts(self._client)
        self._stand_in = StandIn(self._client, self.paths)
        self._observer = RunObserver(self, self._history, self._stand_in)

    def python(self, spec: JobSpec) -> str | None:
        """The spec's interpreter as the nodes see it, or the cluster's."""
        given = spec.environment.python
        return self.paths.python_there(given) if given is not None else self._config.python

    def render(self, given: RenderInput) -> Rendered:
        """The sbatch script; for a user's own one what is sent with it."""
        return render(given) if given.native is None else render_native(given, given.native)

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """What the cluster has to say about a spec."""
        if spec.source.kind == "native":  # the verdict on its script comes with its lines
            return native_findings(spec)
        return await preflight(spec, self._place(spec))

    async def verdict(self, given: RenderInput, rendered: Rendered) -> list[Finding]:
        """Whether the queue has that many nodes, and the controller's verdict on the script (sbatch --test-only)."""
        return await native_verdict(given, rendered, self._place(given.spec))

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """None: the nodes' interpreter cannot be asked from here."""
        del spec
        return None

    async def time_limit(self, spec: JobSpec) -> int | None:
        """The limit for a run without one of its own: its queue's default, else the queue's longest."""
        if spec.source.kind == "native":
            return None  # its own lines say it, else the queue's default
        try:
            return default_limit(spec, await self._facts.limits())
        except HyperpodError:
            return None  # the submit says why

    async def choices(self) -> dict[str, list[str]]:
        """The queues, and this user's accounts and QoS."""
        return await self._facts.choices()

    async def job_uid(self) -> int | None:
        """The user's number on the login node, where that is another than here."""
        if self._config.transport == "here":
            return None
        uid = await self._facts.uid()
        return None if uid == os.getuid() else uid

    async def submit(self, bundle: BundleReader) -> Taken:
        """Send the bundle's script."""
        await asyncio.to_thread(bundle.check_own, "submit")
        sending = await asyncio.to_thread(read_sending, bundle)
        try:
            if sending is not None:
                return await self._send_native(bundle, sending)
            script = await asyncio.to_thread(read_script, bundle)
            return Taken(await self._client.sbatch(script))
        except UnreachableError as error:
            if error.code != ANSWER_LOST or (taken := await self._look_for(bundle)) is None:
                raise
            return taken
        finally:
            self._changed()

    def _place(self, spec: JobSpec) -> Place:
        python = self.python(spec)
        return Place(self.name, self._config, self._facts, self._partition, self.paths, python)

    async def _send_native(self, bundle: BundleReader, sending: Sending) -> Taken:
        """From the file, not from stdin: only so it can have arguments, and its name."""
        if sending.script is None:
            raise InternalError("an adopted job cannot be sent")
        path = str(bundle.folder / sending.script)
        if self._config.transport == "ssh":
            path = str(self.paths.to_there(path))
        job_id = await self._client.sbatch_file(path, sending.args, sending.options)
        with contextlib.suppress(HyperpodError):  # where it writes is asked again when it runs
            for job in (await ask_details(self._client, [job_id]))[:1]:
                await asyncio.to_thread(note_files, bundle, job.files)
        return Taken(job_id)

    async def _look_for(self, bundle: BundleReader) -> Taken | None:
        """The job that sbatch may have made before its answer was lost, if it can be seen now."""
        with contextlib.suppress(HyperpodError):  # what is told is that the answer was lost
            return await self.find(bundle)
        return None

    async def find(self, bundle: BundleReader) -> Taken | None:
        """The run's job among this user's: by the id in its comment while the controller knows it, by its working folder in the accounting."""
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return None
        self._changed()
        snapshot = await self._mine.get(0.0)
        job = newest(snapshot.by_run.get(bundle.run_id, ()), None)
        if job is not None:
            return Taken(job.array_job_id)
        folder: str | None = str(self.paths.to_there(str(bundle.folder)))
        sending = await asyncio.to_thread(read_sending, bundle)
        if sending is not None:
            folder = sending.folder
        if folder is None:
            return None
        head = await asyncio.to_thread(bundle.head)
        found = await find_by_folder(self._client, folder, head.created_at, await self._facts.uid())
        return Taken(found) if found is not None else None

    async def cancel(self, bundle: BundleReader) -> None:
        """End the run's job, wherever it is."""
        await self._give(bundle, Order("cancel"))

    async def hold(self, bundle: BundleReader) -> None:
        """Keep the run's job from starting."""
        await self._give(bundle, Order("hold"))

    async def release(self, bundle: BundleReader) -> None:
        """Let the run's job start."""
        await self._give(bundle, Order("release"))

    async def requeue(self, bundle: BundleReader) -> None:
        """End the running attempt; Slurm starts the next one when it can."""
        await self._give(bundle, Order("requeue"))

    async def change(self, bundle: BundleReader, change: Change) -> None:
        """Give the run's job another time limit or partition."""
        await self._give(bundle, Order("change", change))

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Act on jobs of the queue, whoever sent them."""
        snapshot = await self._all.get(1.0)
        try:
            return await give_all(self._client, Order(action, change), jobs, snapshot.jobs)
        finally:
            self._changed()

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Drain or resume nodes."""
        watch = self._view.node_watch
        try:
            return await set_nodes(self._client, action, nodes, reason, lambda: watch.get(0.0))
        finally:
            watch.forget()

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """What the queue says of these runs."""
        words = await self._observer.observe(bundles)
        if self._config.hyperpod is None:
            return words

        async def look() -> dict[str, NodeRepair]:
            return ordered_repairs(await self._view.node_watch.get(IDLE))

        return await with_repairs(words, bundles, look, self.kind)

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """The nodes write their records themselves."""
        del bundle, seconds
        return False

    async def cluster(self) -> Cluster:
        """The cluster in one line."""
        return await self._view.cluster(self.name, self.kind)

    async def nodes(self) -> list[Node]:
        """All nodes."""
        return await self._view.nodes()

    async def queues(self) -> list[Queue]:
        """All partitions."""
        return await self._view.queues()

    async def jobs(self) -> list[Job]:
        """The queue of all users."""
        return await self._view.jobs()

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        said = await self.runs([bundle])
        word = said.get(bundle.run_id)
        if word is None:
            return WaitReason(bundle.run_id, None, None)
        return await explain(self._client, await self._all.get(2.0), bundle, word)

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """What an ended run used, by the accounting, else by its records."""
        return await self._accounting.usage(bundle, kept=self._history.kept)

    async def open_port(self, bundle: BundleReader, node: int, port: int) -> PortStream:
        """Not offered."""
        raise UnsupportedError(
            "Slurm clusters cannot reach ports of nodes from here",
            hint="open it by ssh: ssh -L PORT:NODE:PORT LOGIN-NODE",
            detail={"run_id": bundle.run_id, "node": node, "port": port},
        )

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """None."""
        del bundle
        return []

    async def foreign_job(self, job: str) -> ForeignJob:
        """A job that was sent with sbatch itself."""
        return await look_up(self._client, (await self._facts.look()).user, job)

    async def adopted(self, bundle: BundleReader) -> None:
        """Write the run's id into the job's comment."""
        await mark(self._client, await self._job_of(bundle), bundle.run_id)
        self._changed()

    def attend(self) -> None:
        """Somebody looks at runs or clusters now; while nobody does, the controller is not asked."""
        self._pace.attend()

    def checkup(self) -> list[Step]:
        """The commands, the controller, and who this is there."""
        place = (self._client, self._facts, self._partition, self.paths)
        return SlurmCheckup(self.name, self._config, *place).steps()

    async def close(self) -> None:
        """Give back connections."""
        await self._client.transport.close()

    async def mine(self) -> Snapshot:
        """This user's jobs."""
        before = self._mine.last
        snapshot = await self._mine.get(self._pace.max_age)
        if before is not None and snapshot is not before and snapshot.states != before.states:
            self._pace.news()
        return snapshot

    async def everybodys(self) -> Snapshot:
        """All jobs."""
        return await self._all.get(max(5.0, self._pace.max_age))

    async def end(self, job_id: str) -> None:
        """End a job that is none of ours to keep."""
        await self._client.scancel(job_id)

    async def hides_jobs(self) -> bool:
        """Whether a user is not shown the jobs of others."""
        return "jobs" in (await self._facts.settings()).private

    async def nodes_down(self, names: Iterable[str]) -> bool:
        """Whether one of these nodes is down."""
        listed = ",".join(names)
        if not listed:
            return False
        said = await self._client.ask(["sinfo", "--noheader", f"--nodes={listed}", "--format=%T"])
        return any(state.startswith(("down", "fail")) for state in said.split())

    async def _give(self, bundle: BundleReader, order: Order) -> None:
        await asyncio.to_thread(bundle.check_own, order.action)
        job = await self._job_of(bundle)
        # It is looked at for the tasks of an array, and for the words of an error; a cancel must not hang on that.
        snapshot = self._mine.last if order.action == "cancel" else await self._mine.get(1.0)
        try:
            await give_to(self._client, order, job, snapshot.jobs if snapshot else ())
        finally:
            self._changed()

    def _changed(self) -> None:
        """Something was or may have been changed: nothing seen before counts any more."""
        self._mine.forget()
        self._all.forget()
        self._pace.news()

    async def _job_of(self, bundle: BundleReader) -> str:
        """The id of a run's job as Slurm's commands take it.

        Raises:
            NotFoundError: The scheduler does not have it.
        """
        records = await asyncio.to_thread(bundle.read)
        known = scheduler_id(records, bundle.index)
        if known is not None:
            return known
        taken = await self.find(bundle)
        if taken is None:
            raise NotFoundError(
                f"the scheduler has no job of {bundle.run_id}",
                code="no_such_job",
                hint="submit it again",
            )
        sent = taken.scheduler_id
        return sent if bundle.index is None else f"{sent}_{bundle.index}"
