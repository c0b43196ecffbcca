"""The Kubernetes engine: a run as a PyTorchJob, TrainJob, HyperPodPyTorchJob or Job."""

from __future__ import annotations

from hyperpod_jlab.core.config import ClusterConfig, KubernetesCluster
from hyperpod_jlab.core.errors import UnsupportedError
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.engines.registry import EngineFactory, typed_config
from hyperpod_jlab.storage.partition import Partition

SCHEDULER = Scheduler(
    "kubernetes",
    side="pod",
    names_nodes_by_host=False,
    after_node_loss="its pods there end, and its operator recreates them if it restarts such pods",
    after_repair="lost pods are recreated on a node with free resources",
)


def _make(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    try:
        from hyperpod_jlab.engines.kubernetes.engine import KubernetesOrchestrator
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hyperpod_jlab"):
            raise
        raise missing_package_error(error, {"cluster": name}) from error
    return KubernetesOrchestrator(name, typed_config(KubernetesCluster, config), partition)


def missing_package_error(error: ModuleNotFoundError, detail: dict[str, str] | None = None) -> UnsupportedError:
    """The error when a package that only Kubernetes clusters need is not installed."""
    return UnsupportedError(
        f"Kubernetes clusters need the package {error.name}, which is not installed",
        code="kubernetes_missing",
        hint="pip install 'hyperpod-jlab[kubernetes]'",
        detail=detail or {},
    )


ENGINE = EngineFactory(SCHEDULER, _make, task_settings=("namespace", "claim", "image"))
