"""The embedded cluster's engine kind."""

from __future__ import annotations

from hyperpod_jlab.core.config import ClusterConfig, LocalCluster
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.kind import EngineKind, typed_config
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.storage.partition import Partition

SCHEDULER = Scheduler("local", side="here", runs_locally=True)


def _make(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    from hyperpod_jlab.engines.local.engine import LocalOrchestrator

    return LocalOrchestrator(name, typed_config(LocalCluster, config), partition)


KIND = EngineKind(SCHEDULER, _make)
