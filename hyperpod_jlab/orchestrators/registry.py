"""Making the engine of a configured cluster; its package is imported only then."""

from __future__ import annotations

from hyperpod_jlab.model.config import ClusterConfig, LocalCluster
from hyperpod_jlab.model.errors import UnsupportedError
from hyperpod_jlab.orchestrators.protocol import Orchestrator
from hyperpod_jlab.storage.partition import Partition


def make_orchestrator(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    """The engine behind a cluster.

    Raises:
        UnsupportedError: This version has no engine of that kind.
    """
    if isinstance(config, LocalCluster):
        from hyperpod_jlab.orchestrators.local.engine import LocalOrchestrator

        return LocalOrchestrator(name, config, partition)
    raise UnsupportedError(
        f"this version cannot talk to {config.orchestrator} clusters yet",
        hint="use the local cluster, or update hyperpod_jlab",
        detail={"cluster": name, "orchestrator": config.orchestrator},
    )
