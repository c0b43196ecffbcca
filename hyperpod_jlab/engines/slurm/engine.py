"""A Slurm cluster as an `Orchestrator`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.engines.protocol import Orchestrator, Rendered, RenderInput, SubmitResult
from hyperpod_jlab.engines.slurm import SCHEDULER
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.job_queue import JobQueue
from hyperpod_jlab.engines.slurm.native import Sending, native_findings, read_sending, render_native
from hyperpod_jlab.engines.slurm.preflight import PreflightContext, default_limit, dry_run_native, preflight
from hyperpod_jlab.engines.slurm.queue import PollInterval
from hyperpod_jlab.engines.slurm.render import read_script, render
from hyperpod_jlab.engines.slurm.ssh import build_transport
from hyperpod_jlab.engines.slurm.transport import ANSWER_LOST
from hyperpod_jlab.storage.partition import PathMap

if TYPE_CHECKING:
    from hyperpod_jlab.core.allowance import Allowance
    from hyperpod_jlab.core.cluster import Cluster, WaitReason
    from hyperpod_jlab.core.config import SlurmCluster
    from hyperpod_jlab.core.finding import Finding
    from hyperpod_jlab.core.records import Observation
    from hyperpod_jlab.core.repair import NodeRepair
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.engines.slurm.accounting import Accounting, AccountingHistory
    from hyperpod_jlab.engines.slurm.actions import SlurmActions, SlurmNodeControl
    from hyperpod_jlab.engines.slurm.checkup import SlurmCheckup
    from hyperpod_jlab.engines.slurm.history import SlurmHistory
    from hyperpod_jlab.engines.slurm.job_queue import JobFinder
    from hyperpod_jlab.engines.slurm.observe import RunObserver
    from hyperpod_jlab.engines.slurm.remote_task import SlurmTasks
    from hyperpod_jlab.engines.slurm.run_nodes import RunNodes
    from hyperpod_jlab.engines.slurm.tables import SlurmTables
    from hyperpod_jlab.storage.partition import Partition
    from hyperpod_jlab.storage.records import BundleReader


REPAIRS_TTL_S = 15.0
"""Seconds for which the repairs that HyperPod writes at its nodes are cached."""


class SlurmOrchestrator(Orchestrator):
    """Runs as Slurm jobs."""

    scheduler = SCHEDULER
    uses_dependency_ids = True

    def __init__(self, name: str, config: SlurmCluster, partition: Partition) -> None:
        self.name = name
        self.paths = PathMap.create_map(str(partition.root), config.storage)
        self._config = config
        self._partition = partition
        self._transport = build_transport(config)
        self._client = client = SlurmClient(self._transport)
        self._facts = facts = ClusterFacts(client)
        self._pace = PollInterval()
        self._queue = JobQueue(client, facts, self._pace, config)

        self.choices = facts
        self.time_limits = self
        self.native_check = self
        self.job_user = None if config.transport == "here" else self
        self.wait_explainer = self
        self.allowance_limits = self

    # The other parts are imported on first use: a submit needs none of them.

    @property
    def polling(self) -> SlurmOrchestrator:
        """Polling of the queue and the nodes."""
        return self

    def mark_active(self) -> None:
        """Mark the cluster as in use."""
        self._pace.mark_active()

    def refresh(self) -> None:
        """Invalidate what was read of the queue and the nodes, at most once a second."""
        self._pace.on_event()
        if self._pace.may_refresh():
            self.tables.forget()

    @cached_property
    def tables(self) -> SlurmTables:
        from hyperpod_jlab.engines.slurm.tables import SlurmTables

        runs_here = self._config.transport == "here"
        return SlurmTables(self._client, self._queue, self._pace, runs_here=runs_here)

    @cached_property
    def actions(self) -> SlurmActions:
        from hyperpod_jlab.engines.slurm.actions import SlurmActions

        return SlurmActions(self._client, self._queue, self._finder, self._facts)

    @property
    def job_actions(self) -> SlurmActions:
        return self.actions

    @cached_property
    def accounting(self) -> Accounting:
        """Resource usage of runs."""
        from hyperpod_jlab.engines.slurm.accounting import Accounting

        return Accounting(self._client, self._history)

    @property
    def history(self) -> SlurmHistory | None:
        """Jobs of all users from the accounting; None once it is known that the cluster keeps none."""
        return self._job_history if self._history.is_available else None

    @cached_property
    def _job_history(self) -> SlurmHistory:
        from hyperpod_jlab.engines.slurm.history import SlurmHistory

        tables = self.tables
        return SlurmHistory(self._client, self._queue, self._facts, self._history, tables)

    @cached_property
    def node_control(self) -> SlurmNodeControl:
        from hyperpod_jlab.engines.slurm.actions import SlurmNodeControl

        return SlurmNodeControl(self._client, self.tables.nodes_query)

    @cached_property
    def shells(self) -> RunNodes:
        from hyperpod_jlab.engines.slurm.run_nodes import RunNodes

        return RunNodes(self._transport, self._client, self._queue, self._config)

    @property
    def forwarding(self) -> RunNodes:
        return self.shells

    @cached_property
    def remote_tasks(self) -> SlurmTasks:
        """Administrators' tasks."""
        from hyperpod_jlab.engines.slurm.remote_task import SlurmTasks

        return SlurmTasks(self._client, self._config, self.paths)

    @cached_property
    def checkup(self) -> SlurmCheckup:
        """The checks of ``hpj doctor``."""
        from hyperpod_jlab.engines.slurm.checkup import SlurmCheckup

        helpers = (self._client, self._facts, self._partition, self.paths)
        return SlurmCheckup(self.name, self._config, *helpers)

    @cached_property
    def _finder(self) -> JobFinder:
        from hyperpod_jlab.engines.slurm.job_queue import JobFinder

        return JobFinder(self._client, self._queue, self._facts, self.paths)

    @cached_property
    def _history(self) -> AccountingHistory:
        from hyperpod_jlab.engines.slurm.accounting import AccountingHistory

        return AccountingHistory(self._client)

    @cached_property
    def _observer(self) -> RunObserver:
        from hyperpod_jlab.engines.slurm.observe import RunObserver

        return RunObserver(self._queue, self._history, self._client, self.paths)

    def python(self, spec: JobSpec) -> str | None:
        """The spec's interpreter as the nodes see it, or the cluster's."""
        python = spec.environment.python
        return self.paths.to_cluster_python(python) if python is not None else self._config.python

    def render(self, render_input: RenderInput) -> Rendered:
        """The sbatch script, or for a user's own script, the options that it is submitted with."""
        return render(render_input) if render_input.native is None else render_native(render_input, render_input.native)

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """The cluster's findings about a spec."""
        if spec.source.kind == "native":  # its script's verdict comes with its own lines
            return native_findings(spec)
        return await preflight(spec, self._preflight_context(spec))

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Submit the bundle's script."""
        await asyncio.to_thread(bundle.check_own, "submit")
        sending = await asyncio.to_thread(read_sending, bundle)
        try:
            if sending is not None:
                return await self._send_native(bundle, sending)
            script = await asyncio.to_thread(read_script, bundle)
            return SubmitResult(await self._client.sbatch(script))
        except UnreachableError as error:
            if error.code != ANSWER_LOST or (existing := await self._find_submitted(bundle)) is None:
                raise
            return existing
        finally:
            self._queue.changed()

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """The run's job among this user's jobs."""
        return await self._finder.find(bundle)

    async def cluster(self) -> Cluster:
        """The cluster in one line."""
        return await self.tables.cluster(self.name, self.kind)

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """Observations of these runs from the queue."""
        observations = await self._observer.observe(bundles)
        if self._config.hyperpod is None:
            return observations

        from hyperpod_jlab.engines.repairs import with_repairs
        from hyperpod_jlab.engines.slurm.observe import ordered_repairs

        async def load_repairs() -> dict[str, NodeRepair]:
            return ordered_repairs(await self.tables.nodes_query.get(max(REPAIRS_TTL_S, self._pace.table_max_age)))

        return await with_repairs(observations, bundles, load_repairs, SCHEDULER)

    async def identity(self) -> str | None:
        """The cluster's own name and its controller: a name alone may be any other's."""
        settings = await self._facts.settings()
        return f"{settings.cluster} {settings.controller}" if settings.controller else None

    async def dry_run(self, render_input: RenderInput, rendered: Rendered) -> list[Finding]:
        """Whether the queue has that many nodes, and the controller's verdict on the script (sbatch --test-only)."""
        return await dry_run_native(render_input, rendered, self._preflight_context(render_input.spec))

    async def time_limit(self, spec: JobSpec) -> int | None:
        """The default limit for a run without one: its queue's default, else the queue's maximum."""
        if spec.source.kind == "native":
            return None  # the script sets it, else the queue's default applies
        try:
            return default_limit(spec, await self._facts.limits())
        except HyperpodError:
            return None  # the submit reports why

    async def job_uid(self) -> int | None:
        """The user's uid on the login node, if it differs from the local one."""
        uid = await self._facts.uid()
        return None if uid == os.getuid() else uid

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """Why a run waits."""
        from hyperpod_jlab.core.cluster import WaitReason
        from hyperpod_jlab.engines.slurm.waiting import explain

        observations = await self.runs([bundle])
        observation = observations.get(bundle.run_id)
        if observation is None:
            return WaitReason(bundle.run_id, None, None)
        return await explain(self._client, await self._queue.all_queue.get(2.0), bundle, observation)

    async def allowances(self, account: str | None, qos: str | None) -> list[Allowance]:
        """What this user's accounts and QoS may use."""
        from hyperpod_jlab.engines.slurm.allowances import read_allowances

        return await read_allowances(self._client, self._facts, account, qos)

    async def close(self) -> None:
        """Close connections."""
        await self._client.transport.close()

    def _preflight_context(self, spec: JobSpec) -> PreflightContext:
        python = self.python(spec)
        return PreflightContext(self.name, self._config, self._facts, self._partition, self.paths, python)

    async def _send_native(self, bundle: BundleReader, sending: Sending) -> SubmitResult:
        """Submit the file itself, not stdin: only then can the script have arguments and keep its name."""
        from hyperpod_jlab.engines.slurm.script_jobs import query_scripts, write_job_files

        path = str(bundle.folder / sending.script)
        if self._config.transport == "ssh":
            path = str(self.paths.to_cluster_path(path))
        job_id = await self._client.sbatch_file(path, sending.args, sending.options)
        with contextlib.suppress(HyperpodError):  # the output path is queried again when the job runs
            for script in list((await query_scripts(self._client, [job_id])).values())[:1]:
                await asyncio.to_thread(write_job_files, bundle, script.files)
        return SubmitResult(job_id)

    async def _find_submitted(self, bundle: BundleReader) -> SubmitResult | None:
        """The job that sbatch may have created although its response was lost, if it is visible now."""
        with contextlib.suppress(HyperpodError):  # the caller reports that the response was lost
            return await self.find(bundle)
        return None
