"""A Kubernetes cluster as an `Orchestrator`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hyperpod_jlab.core.cluster import Cluster, WaitReason
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kind import SCHEDULER
from hyperpod_jlab.engines.kubernetes.ports import Forwarder
from hyperpod_jlab.engines.kubernetes.submit.code import FOLDER
from hyperpod_jlab.engines.kubernetes.submit.preflight import NO_NAMESPACE
from hyperpod_jlab.engines.kubernetes.submit.send import Sender
from hyperpod_jlab.engines.kubernetes.submit.sent import sent_in
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.kubernetes.waiting.quota import manifest_findings, room_findings
from hyperpod_jlab.engines.protocol import Orchestrator, Rendered, RenderInput, SubmitResult
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from hyperpod_jlab.engines.kubernetes.actions import KubernetesActions, KubernetesNodeOrders
    from hyperpod_jlab.engines.kubernetes.checkup import KubernetesCheckup
    from hyperpod_jlab.engines.kubernetes.observe.runs import RunWatch
    from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesTasks


class KubernetesOrchestrator(Orchestrator):
    """Runs as objects of a training operator."""

    scheduler = SCHEDULER

    def __init__(self, name: str, config: KubernetesCluster, partition: Partition) -> None:
        self.name = name
        self.paths = PathMap.create_map(
            str(partition.root),
            config.storage.mount if config.storage is not None else FOLDER,
            shared=config.storage is not None,
        )
        self._config = config
        self._connection = ClusterConnection(config)
        self._sender = Sender(self._connection, config.storage, self.paths)
        self._view = KubernetesTables(self._connection)

        self.choices = self._view
        self.native_check = self
        self.wait_explainer = self
        self.ports = Forwarder(self._connection)

    @cached_property
    def _watch(self) -> RunWatch:
        from hyperpod_jlab.engines.kubernetes.observe.runs import RunWatch

        return RunWatch(self._connection, shared=self._config.storage is not None)

    @property
    def remote_records(self) -> RunWatch:
        """Records and logs of pods without the storage partition."""
        return self._watch

    @property
    def polling(self) -> RunWatch:
        """The watches."""
        return self._watch

    @property
    def tables(self) -> KubernetesTables:
        """The tables."""
        return self._view

    @cached_property
    def actions(self) -> KubernetesActions:
        """Actions on runs."""
        from hyperpod_jlab.engines.kubernetes.actions import KubernetesActions

        fetched = self._config.storage is None
        return KubernetesActions(self._connection, self._watch, self._sender, fetched=fetched)

    @property
    def job_actions(self) -> KubernetesActions:
        """Actions on jobs."""
        return self.actions

    @property
    def adoption(self) -> KubernetesActions:
        """Jobs that were sent elsewhere."""
        return self.actions

    @cached_property
    def node_orders(self) -> KubernetesNodeOrders:
        """Draining and resuming nodes."""
        from hyperpod_jlab.engines.kubernetes.actions import KubernetesNodeOrders

        return KubernetesNodeOrders(self._connection)

    @cached_property
    def remote_tasks(self) -> KubernetesTasks:
        """Tasks of administrators."""
        from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesTasks

        return KubernetesTasks(self._connection)

    @cached_property
    def checkup(self) -> KubernetesCheckup:
        """The checks of ``hpj doctor``."""
        from hyperpod_jlab.engines.kubernetes.checkup import KubernetesCheckup

        return KubernetesCheckup(self.name, self._config, self._connection, self._view)

    def python(self, spec: JobSpec) -> str | None:
        """The spec's interpreter as the pods see it, or the cluster's."""
        given = spec.environment.python
        if given is None:
            return self._config.python
        return given if self._config.storage is None else self.paths.cluster_python(given)

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

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Make the job. Its name is the run's, so a second one is the same."""
        try:
            return await self._sender.submit(bundle)
        finally:
            self._changed()

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """The run's job, by its name."""
        self._changed()
        return await self._sender.find(bundle)

    async def cluster(self) -> Cluster:
        """The cluster in one line."""
        return await self._view.cluster(self.name, self.kind)

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """What the cluster says of these runs."""
        from hyperpod_jlab.engines.kubernetes.observe.runs import labelled_repairs
        from hyperpod_jlab.engines.kubernetes.waiting.wait import with_queue_words
        from hyperpod_jlab.engines.repairs import with_repairs

        words = await self._watch.observe(bundles)
        words = await with_queue_words(self._view.kueue, words)
        if self._config.hyperpod is None and self._config.eks is None:
            return words
        return await with_repairs(
            words, bundles, lambda: labelled_repairs(self._view.looks), SCHEDULER
        )

    async def verdict(self, given: RenderInput, rendered: Rendered) -> list[Finding]:
        """The API server's verdict on a user's own manifest (dry run), and what queues and nodes say of one that it takes."""
        del given
        sent = await asyncio.to_thread(sent_in, rendered.text)  # it may be a megabyte
        found = await self._sender.verdict(sent)
        if any(finding.level == "error" for finding in found):
            return found
        return [*found, *await manifest_findings(self._view, sent.document)]

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        from hyperpod_jlab.engines.kubernetes.observe.pods import LIMIT
        from hyperpod_jlab.engines.kubernetes.waiting.wait import explain

        word = (await self.runs([bundle])).get(bundle.run_id)
        if word is not None and word.reason_code == LIMIT:  # no room would help it
            return WaitReason(bundle.run_id, word.reason, word.reason_code)
        return await explain(self._view, bundle, word)

    async def close(self) -> None:
        """Close the connections."""
        if "_watch" in self.__dict__:
            await self._watch.close()
        await self._connection.close()

    def _changed(self) -> None:
        """Something was or may have been changed: what was seen before counts no more."""
        if "_watch" in self.__dict__:  # else nothing was seen
            self._watch.forget()
