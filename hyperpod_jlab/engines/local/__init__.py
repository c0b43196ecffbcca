"""The embedded cluster: N nodes as N process groups on this machine, for trials, teaching and smoke tests."""

from __future__ import annotations

from hyperpod_jlab.core.config import ClusterConfig, LocalCluster
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.engines.registry import EngineFactory, typed_config
from hyperpod_jlab.storage.partition import Partition

SCHEDULER = Scheduler("local", side="here", runs_locally=True)


def _make(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    from hyperpod_jlab.engines.local.engine import LocalOrchestrator

    return LocalOrchestrator(name, typed_config(LocalCluster, config), partition)


ENGINE = EngineFactory(SCHEDULER, _make)
