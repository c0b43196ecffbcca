"""The smallest useful engine: one process on this machine for each run. It has the two required concerns, and no other."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import time
from collections.abc import Sequence
from typing import Literal

from hyperpod_jlab.core.cluster import Cluster
from hyperpod_jlab.core.config import BaseCluster, ClusterConfig
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.launch import guard_command
from hyperpod_jlab.engines.protocol import Orchestrator, Rendered, RenderInput, SubmitResult
from hyperpod_jlab.engines.registry import EngineFactory, typed_config
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader

SCRIPT = "tiny.sh"


class TinyCluster(BaseCluster):
    """Its clusters in the configuration."""

    orchestrator: Literal["tiny"] = "tiny"
    python: str


class TinyEngine(Orchestrator):
    """Runs as processes that nobody but this engine knows."""

    scheduler = Scheduler("tiny", side="here")

    def __init__(self, name: str, config: TinyCluster, partition: Partition) -> None:
        self.name = name
        self.paths = PathMap.create_map(str(partition.root))
        self._config = config
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def python(self, spec: JobSpec) -> str:
        """The spec's interpreter, or the cluster's."""
        return spec.environment.python or self._config.python

    def render(self, given: RenderInput) -> Rendered:
        """A script that starts the launcher through the guard."""
        command = [
            given.python or "python3",
            *guard_command(given.guard_policy.guard_args(given.paths.remote, given.bundle)),
            "node",
            "--node-rank=0",
            "--nodes=1",
            "--master-addr=127.0.0.1",
            "--master-port=0",
            f"--scheduler-id={_job(given.run_id)}",
            "--incarnation=1",
            "--node-name=tiny",
            "--quiet",
        ]
        return Rendered(SCRIPT, f"exec {shlex.join(command)}\n", "shell")

    async def preflight(self, spec: JobSpec) -> list[Finding]:
        """One node is all there is."""
        if spec.resources.nodes == 1:
            return []
        words = "a tiny cluster has one node"
        return [Finding(level="error", code="too_many_nodes", message=words)]

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Start the script, once."""
        await asyncio.to_thread(bundle.check_own, "submit")
        if bundle.run_id not in self._processes:
            self._processes[bundle.run_id] = _start(bundle)
        return SubmitResult(_job(bundle.run_id))

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """Whether it was started."""
        return SubmitResult(_job(bundle.run_id)) if bundle.run_id in self._processes else None

    async def cluster(self) -> Cluster:
        """This machine in one line."""
        going = sum(one.poll() is None for one in self._processes.values())
        return Cluster(self.name, self.kind, default=False, state="up", nodes=1, running=going)

    async def runs(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """Whether their processes run."""
        known = {one.run_id: self._processes.get(one.run_id) for one in bundles}
        return {run: _seen(run, process) for run, process in known.items() if process is not None}

    async def close(self) -> None:
        """End what still runs."""
        for process in self._processes.values():
            process.terminate()
            await asyncio.to_thread(process.wait)


def _start(bundle: BundleReader) -> subprocess.Popen[bytes]:
    command = ["/bin/sh", str(bundle.folder / SCRIPT)]
    return subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL)


def _job(run_id: str) -> str:
    return f"tiny-{run_id}"


def _seen(run_id: str, process: subprocess.Popen[bytes]) -> Observation:
    code = process.poll()
    return Observation(
        time=time.time(),
        observer="tiny",
        scheduler_id=_job(run_id),
        state="running" if code is None else "ended",
        verdict=None if code is None else "FAILED" if code else "COMPLETED",
    )


def _make(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    return TinyEngine(name, typed_config(TinyCluster, config), partition)


ENGINE = EngineFactory(TinyEngine.scheduler, _make)
