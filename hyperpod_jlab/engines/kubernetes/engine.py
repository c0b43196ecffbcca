"""A Kubernetes cluster as an `Orchestrator`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from hyperpod_jlab.core.check import Step
from hyperpod_jlab.core.cluster import Change, Cluster, Job, JobResult, Node, Queue, WaitReason
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, NotFoundError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.node_actions import DrainKind
from hyperpod_jlab.core.records import ActionKind, Observation
from hyperpod_jlab.core.run import Usage
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.actions import (
    act_on,
    cancel_task,
    cancelled,
    carry_out,
    refuse_task,
    set_nodes,
)
from hyperpod_jlab.engines.kubernetes.api.cluster import Connection
from hyperpod_jlab.engines.kubernetes.checkup import KubernetesCheckup
from hyperpod_jlab.engines.kubernetes.observe.external_jobs import look_up, mark
from hyperpod_jlab.engines.kubernetes.observe.pods import LIMIT
from hyperpod_jlab.engines.kubernetes.observe.runs import RunWatch, labelled_repairs
from hyperpod_jlab.engines.kubernetes.ports import Forwarder
from hyperpod_jlab.engines.kubernetes.submit.code import FOLDER
from hyperpod_jlab.engines.kubernetes.submit.preflight import NO_NAMESPACE
from hyperpod_jlab.engines.kubernetes.submit.send import Sender
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent, sent_in
from hyperpod_jlab.engines.kubernetes.tables.view import ClusterView
from hyperpod_jlab.engines.kubernetes.targets import target_of
from hyperpod_jlab.engines.kubernetes.waiting.quota import manifest_findings, room_findings
from hyperpod_jlab.engines.kubernetes.waiting.wait import explain, with_queue_words
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
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader

_LOOK = 2.0
"""Seconds that one look for what pods say last may take."""


class KubernetesOrchestrator:
    """Runs as objects of a training operator."""

    kind = "kubernetes"
    capabilities = Capabilities(
        hold=True,
        requeue=True,
        changes=("queue",),
        arrays=True,
        ports=True,
        adopt=True,
        drain=True,
    )

    def __init__(self, name: str, config: KubernetesCluster, partition: Partition) -> None:
        self.name = name
        self.paths = PathMap.of(
            str(partition.root),
            config.storage.mount if config.storage is not None else FOLDER,
            shared=config.storage is not None,
        )
        self._config = config
        self._connection = Connection(config)
        self._watch = RunWatch(self._connection, shared=config.storage is not None)
        self._sender = Sender(self._connection, config.storage, self.paths)
        self._ports = Forwarder(self._connection)
        self._view = ClusterView(self._connection)

    def python(self, spec: JobSpec) -> str | None:
        """The spec's interpreter as the pods see it, or the cluster's."""
        given = spec.environment.python
        if given is None:
            return self._config.python
        return given if self._config.storage is None else self.paths.python_there(given)

    def render(self, given: RenderInput) -> Rendered:
        """The manifest."""
        return self._sender.render(given)

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """What the cluster has to say about a spec."""
        found = await self._sender.preflight(spec, self.python(spec))
        if any(finding.code == NO_NAMESPACE for finding in found):
            return found  # no queue of it is there either
        hyperpod, known = self._config.hyperpod is not None, self._sender.instance(spec)
        return [*found, *await room_findings(self._view, spec, known, hyperpod=hyperpod)]

    async def verdict(self, given: RenderInput, rendered: Rendered) -> list[Finding]:
        """The API server's verdict on a user's own manifest (dry run), and what queues and nodes say of one that it takes."""
        del given
        sent = await asyncio.to_thread(sent_in, rendered.text)  # it may be a megabyte
        found = await self._sender.verdict(sent)
        if any(finding.level == "error" for finding in found):
            return found
        return [*found, *await manifest_findings(self._view, sent.document)]

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """None: the image's interpreter cannot be asked beforehand."""
        del spec
        return None

    async def time_limit(self, spec: JobSpec) -> int | None:
        """None: without a limit of its own a run has none."""
        del spec
        return None

    async def job_uid(self) -> int | None:
        """None: as which user the pods run is not known here."""
        return None

    async def choices(self) -> dict[str, list[str]]:
        """Names that this user may give."""
        return await self._view.choices()

    async def submit(self, bundle: BundleReader) -> Taken:
        """Make the job. Its name is the run's, so a second one is the same."""
        try:
            return await self._sender.submit(bundle)
        finally:
            self._watch.forget()

    async def find(self, bundle: BundleReader) -> Taken | None:
        """The run's job, by its name."""
        self._watch.forget()
        return await self._sender.find(bundle)

    async def cancel(self, bundle: BundleReader) -> None:
        """End the run's job, by removing it, and what stands beside it, or one task of an array; what it has written stays in the bundle."""
        try:
            await self._act("cancel", bundle)
        except NotFoundError:
            if (await asyncio.to_thread(bundle.read)).submission is None:
                await self._sender.take_back(bundle)
                raise  # it may never have got there
        except ConflictError as error:
            if error.code != "wrong_state":
                raise
            return  # it has ended just now
        sent = await asyncio.to_thread(read_sent, bundle)
        await asyncio.to_thread(bundle.add_observation, cancelled(sent.name))
        await self._watch.remove_companions(bundle)

    async def hold(self, bundle: BundleReader) -> None:
        """Keep the run's job from starting."""
        await self._act("hold", bundle)

    async def release(self, bundle: BundleReader) -> None:
        """Let the run's job start."""
        await self._act("release", bundle)

    async def requeue(self, bundle: BundleReader) -> None:
        """End the run's pods; new ones open the next attempt when the cluster has room."""
        await self._act("requeue", bundle)

    async def change(self, bundle: BundleReader, change: Change) -> None:
        """Give the run's job another queue."""
        await self._act("change", bundle, change)

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Act on jobs of the table, whoever sent them."""
        client = await self._connection.client()
        try:
            return await act_on(client, action, jobs, change, self._connection.namespace)
        finally:
            self._watch.forget()

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Cordon or uncordon nodes."""
        return await set_nodes(await self._connection.client(), action, nodes, reason)

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """What the cluster says of these runs."""
        words = await self._watch.observe(bundles)
        words = await with_queue_words(self._view.kueue, words)
        if self._config.hyperpod is None and self._config.eks is None:
            return words
        return await with_repairs(
            words, bundles, lambda: labelled_repairs(self._view.looks), self.kind
        )

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """Fetch what the pods have said, where they do not mount the partition."""
        return await self._watch.catch_up(bundle, seconds)

    async def cluster(self) -> Cluster:
        """The cluster in one line."""
        return await self._view.cluster(self.name, self.kind)

    async def nodes(self) -> list[Node]:
        """All nodes."""
        return await self._view.nodes()

    async def queues(self) -> list[Queue]:
        """All queues that this user may see."""
        return await self._view.queues()

    async def jobs(self) -> list[Job]:
        """The jobs of all users."""
        return await self._view.jobs()

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        word = (await self.runs([bundle])).get(bundle.run_id)
        if word is not None and word.reason_code == LIMIT:  # no room would help it
            return WaitReason(bundle.run_id, word.reason, word.reason_code)
        return await explain(self._view, bundle, word)

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """Not offered."""
        del bundle
        return None

    async def open_port(self, bundle: BundleReader, node: int, port: int) -> PortStream:
        """Connect to a port of the node's pod."""
        return await self._ports.open(bundle, node, port)

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The kubectl commands for the pods that run."""
        return await self._ports.shells(bundle)

    async def foreign_job(self, job: str) -> ForeignJob:
        """A job that was sent with kubectl."""
        client = await self._connection.client()
        return await look_up(client, job, self._connection.namespace)

    async def adopted(self, bundle: BundleReader) -> None:
        """Label the job as the run's."""
        client = await self._connection.client()
        with contextlib.suppress(HyperpodError):  # it is adopted, and its log seen, all the same
            await mark(client, await target_of(client, bundle), bundle.run_id)
        self._watch.forget()

    def attend(self) -> None:
        """Somebody goes on looking: what changes is watched."""
        self._watch.attend()

    def checkup(self) -> list[Step]:
        """The API server, who this is to it, and what it lets us do."""
        return KubernetesCheckup(self.name, self._config, self._connection, self._view).steps()

    async def close(self) -> None:
        """Close the connections."""
        await self._watch.close()
        await self._connection.close()

    async def _act(
        self, action: ActionKind, bundle: BundleReader, change: Change | None = None
    ) -> None:
        client = await self._connection.client()
        fetched = self._config.storage is None

        async def look() -> None:
            with contextlib.suppress(HyperpodError):  # what is there has to do
                await self._watch.catch_up(bundle, _LOOK)

        try:
            if bundle.index is not None:
                if action != "cancel":
                    raise refuse_task(bundle.run_id, action)
                await asyncio.to_thread(bundle.check_own, action)
                place = await self._watch.look.where(bundle)
                await cancel_task(client, self._watch.look, place, look if fetched else None)
                return
            target = await target_of(client, bundle)
            await carry_out(client, action, target, change, look if fetched else None)
        finally:
            self._watch.forget()
