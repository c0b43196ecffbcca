"""The embedded cluster as an `Orchestrator`."""

from __future__ import annotations

import asyncio
import platform
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hyperpod_jlab.core.config import LocalCluster
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.local import SCHEDULER, machine, preflight
from hyperpod_jlab.engines.local.board import Board, default_folder
from hyperpod_jlab.engines.local.machine import scheduler_id
from hyperpod_jlab.engines.local.observe import entries_ahead, node_row, observe
from hyperpod_jlab.engines.local.preflight import render
from hyperpod_jlab.engines.local.spawn import spawn_supervisor
from hyperpod_jlab.engines.protocol import Orchestrator, Rendered, RenderInput, SubmitResult
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Cluster, WaitReason
    from hyperpod_jlab.core.usage import Usage
    from hyperpod_jlab.engines.local.actions import LocalActions
    from hyperpod_jlab.engines.local.forward import LocalForwarding
    from hyperpod_jlab.engines.local.observe import LocalTables


class LocalOrchestrator(Orchestrator):
    """Runs as process groups on this machine, a limited number at a time, each under a detached supervisor."""

    scheduler = SCHEDULER

    def __init__(self, name: str, config: LocalCluster, partition: Partition, *, folder: Path | None = None) -> None:
        self.name = name
        self.paths = PathMap.create_map(str(partition.root))
        self._config = config
        self._folder = folder
        self._slots = config.slots or machine.default_slots()
        self.wait_explainer = self
        self.interpreters = self

    @cached_property
    def actions(self) -> LocalActions:
        from hyperpod_jlab.engines.local.actions import LocalActions

        return LocalActions()

    @cached_property
    def tables(self) -> LocalTables:
        from hyperpod_jlab.engines.local.observe import LocalTables

        return LocalTables(self.name, self._board)

    @property
    def forwarding(self) -> LocalForwarding:
        from hyperpod_jlab.engines.local.forward import LocalForwarding

        return LocalForwarding()

    @property
    def accounting(self) -> LocalOrchestrator:
        """Resource usage of runs."""
        return self

    def python(self, spec: JobSpec) -> str:
        """The spec's interpreter, the cluster's, or the one in which hyperpod_jlab is installed."""
        return spec.environment.python or self._config.python or sys.executable

    def render(self, render_input: RenderInput) -> Rendered:
        return render(render_input)

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """This machine's findings about a spec."""
        return await asyncio.to_thread(preflight.findings, spec, self.python(spec))

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Start the run's supervisor; a second one for the same run exits by itself."""
        await asyncio.to_thread(self._spawn, bundle)
        return SubmitResult(scheduler_id(bundle.run_id))

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """Whether this machine has accepted the run: it is on the board, or its supervisor has recorded something."""
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return None
        entries = await asyncio.to_thread(self._board().entries)
        is_listed = any(entry.bundle == str(bundle.records) for entry in entries)
        records = await asyncio.to_thread(bundle.read)
        if is_listed or records.owner is not None:
            return SubmitResult(scheduler_id(bundle.run_id))
        return None

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """Observations of these runs' supervisors; runs without a live one are reported as lost."""
        return await asyncio.to_thread(observe, bundles, time.time())

    async def cluster(self) -> Cluster:
        """This machine's summary."""
        from hyperpod_jlab.core.cluster import Cluster, gpu_totals

        entries = await asyncio.to_thread(self._board().entries)
        node = await asyncio.to_thread(node_row, entries)
        return Cluster(
            name=self.name,
            orchestrator=self.kind,
            default=False,
            state="up",
            nodes=1,
            running=sum(entry.state == "running" for entry in entries),
            waiting=sum(entry.state in {"waiting", "held"} for entry in entries),
            gpus=gpu_totals([node]),
            detail={"host": platform.node(), "slots": self._slots, "gpus": node.accelerators},
        )

    async def python_version(self, spec: JobSpec) -> tuple[int, int] | None:
        """Version of the run's interpreter."""
        return (await asyncio.to_thread(preflight.interpreter, self.python(spec))).version

    async def explain_wait(self, bundle: BundleReader) -> WaitReason:
        """The supervisor's own reason, and the run's queue position."""
        from hyperpod_jlab.core.cluster import Blocker, WaitReason

        entries = await asyncio.to_thread(self._board().entries)
        records = await asyncio.to_thread(bundle.read)
        observed = await asyncio.to_thread(observe, [bundle], time.time())
        observations = (*records.observations, *observed.values())
        newest = max(observations, key=lambda observation: observation.time, default=None)
        runs_ahead = entries_ahead(entries, bundle.run_id)
        return WaitReason(
            run_id=bundle.run_id,
            reason=newest.reason if newest else None,
            reason_code=newest.reason_code if newest else None,
            position=len(runs_ahead) + 1,
            ahead=tuple(entry.run_id for entry in runs_ahead),
            blockers=tuple(
                Blocker(
                    entry.run_id,
                    entry.name,
                    entry.user,
                    run_id=entry.run_id,
                    nodes=entry.nodes,
                    accelerators=len(entry.gpus),
                )
                for entry in entries
                if entry.state == "running"
            ),
        )

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """An ended run's usage, from its records."""
        from hyperpod_jlab.engines.repairs import journal_usage

        return await asyncio.to_thread(journal_usage, bundle)

    def _board(self) -> Board:
        return Board(self._folder or default_folder(), slots=self._slots, gpus=len(machine.gpus()))

    def _spawn(self, bundle: BundleReader) -> None:
        spawn_supervisor(bundle, folder=self._folder or default_folder(), slots=self._slots)
