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
from hyperpod_jlab.engines.kubernetes import SCHEDULER
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.run_pods import RunPods
from hyperpod_jlab.engines.kubernetes.submit.preflight import NO_NAMESPACE
from hyperpod_jlab.engines.kubernetes.submit.send import Sender
from hyperpod_jlab.engines.kubernetes.submit.sent import parse_sent
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.kubernetes.waiting.quota import capacity_findings, manifest_findings
from hyperpod_jlab.engines.protocol import Orchestrator, Rendered, RenderInput, SubmitResult
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from hyperpod_jlab.engines.kubernetes.actions import KubernetesActions, KubernetesNodeControl
    from hyperpod_jlab.engines.kubernetes.checkup import KubernetesCheckup
    from hyperpod_jlab.engines.kubernetes.observe.runs import RunTracker
    from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesTasks


class KubernetesOrchestrator(Orchestrator):
    """Runs as objects of a training operator."""

    scheduler = SCHEDULER

    def __init__(self, name: str, config: KubernetesCluster, partition: Partition) -> None:
        self.name = name
        self.paths = PathMap.create_map(
            str(partition.root),
            config.storage.mount if config.storage is not None else None,
            shared=config.storage is not None,
        )
        self._config = config
        self._connection = ClusterConnection(config)
        self._sender = Sender(name, self._connection, self.paths)
        self._tables = KubernetesTables(self._connection)

        self.choices = self._tables
        self.native_check = self
        self.wait_explainer = self

    @cached_property
    def shells(self) -> RunPods:
        return RunPods(self._connection)

    @property
    def forwarding(self) -> RunPods:
        return self.shells

    @cached_property
    def _run_tracker(self) -> RunTracker:
        from hyperpod_jlab.engines.kubernetes.observe.runs import RunTracker

        return RunTracker(self._connection)

    @property
    def remote_records(self) -> RunTracker:
        """Logs of pods without our launcher."""
        return self._run_tracker

    @property
    def polling(self) -> RunTracker:
        """The poller."""
        return self._run_tracker

    @property
    def tables(self) -> KubernetesTables:
        return self._tables

    @cached_property
    def actions(self) -> KubernetesActions:
        from hyperpod_jlab.engines.kubernetes.actions import KubernetesActions

        return KubernetesActions(self._connection, self._run_tracker)

    @property
    def job_actions(self) -> KubernetesActions:
        return self.actions

    @cached_property
    def node_control(self) -> KubernetesNodeControl:
        """Draining and resuming nodes."""
        from hyperpod_jlab.engines.kubernetes.actions import KubernetesNodeControl

        return KubernetesNodeControl(self._connection)

    @cached_property
    def remote_tasks(self) -> KubernetesTasks:
        """Administrators' tasks."""
        from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesTasks

        return KubernetesTasks(self._connection)

    @cached_property
    def checkup(self) -> KubernetesCheckup:
        """The checks of ``hpj doctor``."""
        from hyperpod_jlab.engines.kubernetes.checkup import KubernetesCheckup

        return KubernetesCheckup(self.name, self._config, self._connection, self._tables)

    def python(self, spec: JobSpec) -> str | None:
        """The spec's interpreter as the pods see it, or the cluster's."""
        python = spec.environment.python
        if python is None:
            return self._config.python
        return python if self._config.storage is None else self.paths.to_cluster_python(python)

    def render(self, render_input: RenderInput) -> Rendered:
        return self._sender.render(render_input)

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """The cluster's findings about a spec."""
        findings = await self._sender.preflight(spec, self.python(spec))
        if any(finding.code == NO_NAMESPACE for finding in findings):
            return findings  # its queue cannot exist either
        hyperpod, instance = self._config.hyperpod is not None, self._sender.instance(spec)
        return [*findings, *await capacity_findings(self._tables, spec, instance, hyperpod=hyperpod)]

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Create the job. Its name is the run's, so a repeated submit finds the same one."""
        try:
            return await self._sender.submit(bundle)
        finally:
            self._changed()

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        self._changed()
        return await self._sender.find(bundle)

    async def cluster(self) -> Cluster:
        """The cluster in one line."""
        return await self._tables.cluster(self.name, self.kind)

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """Observations of these runs."""
        from hyperpod_jlab.engines.kubernetes.observe.runs import find_repairs
        from hyperpod_jlab.engines.kubernetes.waiting.wait import add_queue_reasons
        from hyperpod_jlab.engines.repairs import with_repairs

        observations = await self._run_tracker.observe(bundles)
        observations = await add_queue_reasons(self._tables.kueue, observations)
        if self._config.hyperpod is None and self._config.eks is None:
            return observations
        return await with_repairs(observations, bundles, lambda: find_repairs(self._tables.list_cache), SCHEDULER)

    async def identity(self) -> str | None:
        """The API server's address."""
        return (await self._connection.client()).access.server

    async def dry_run(self, render_input: RenderInput, rendered: Rendered) -> list[Finding]:
        """The API server's verdict on a user's own manifest (dry run) and, if it accepts it, the findings of queues and nodes."""
        del render_input
        sent = await asyncio.to_thread(parse_sent, rendered.text)  # it may be a megabyte
        findings = await self._sender.dry_run_submit(sent)
        if any(finding.level == "error" for finding in findings):
            return findings
        return [*findings, *await manifest_findings(self._tables, sent.document)]

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        from hyperpod_jlab.engines.kubernetes.observe.pods import LIMIT
        from hyperpod_jlab.engines.kubernetes.waiting.wait import explain

        observation = (await self.runs([bundle])).get(bundle.run_id)
        if observation is not None and observation.reason_code == LIMIT:  # more capacity would not help it
            return WaitReason(bundle.run_id, observation.reason, observation.reason_code)
        return await explain(self._tables, bundle, observation)

    async def close(self) -> None:
        """Close the connections."""
        if "_watch" in self.__dict__:
            await self._run_tracker.close()
        await self._connection.close()

    def _changed(self) -> None:
        """Invalidate cached state after a possible change."""
        if "_watch" in self.__dict__:  # otherwise nothing is cached
            self._run_tracker.forget()
