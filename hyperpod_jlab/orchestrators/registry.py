"""Making the engine of a configured cluster; its package is imported only then."""

from __future__ import annotations

from hyperpod_jlab.model.config import ClusterConfig, LocalCluster, SlurmCluster
from hyperpod_jlab.model.errors import UnsupportedError
from hyperpod_jlab.orchestrators.protocol import Orchestrator
from hyperpod_jlab.storage.partition import Partition


def make_orchestrator(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    """The engine behind a cluster.

    Raises:
        UnsupportedError: This version cannot run on a cluster that is configured so.
    """
    if isinstance(config, LocalCluster):
        from hyperpod_jlab.orchestrators.local.engine import LocalOrchestrator

        return LocalOrchestrator(name, config, partition)
    if isinstance(config, SlurmCluster):
        from hyperpod_jlab.orchestrators.slurm.engine import SlurmOrchestrator

        return SlurmOrchestrator(name, config, partition)
    try:
        from hyperpod_jlab.orchestrators.kubernetes.engine import KubernetesOrchestrator
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hyperpod_jlab"):
            raise
        raise UnsupportedError(
            f"Kubernetes clusters need the package {error.name}, which is not installed",
            code="kubernetes_missing",
            hint="pip install 'hyperpod-jlab[kubernetes]'",
            detail={"cluster": name},
        ) from error
    return KubernetesOrchestrator(name, config, partition)
