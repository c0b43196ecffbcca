"""The Slurm engine: Slurm's own commands, on this machine or on a login node over SSH."""

from __future__ import annotations

from hyperpod_jlab.core.config import ClusterConfig, SlurmCluster
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.engines.registry import EngineFactory, typed_config
from hyperpod_jlab.storage.partition import Partition

SCHEDULER = Scheduler(
    "slurm",
    side="Slurm node",
    names_nodes_by_host=True,
    after_node_loss="Slurm requeues it unless it was submitted with --no-requeue, and it starts from the beginning",
    after_repair="it is resumed there or requeued",
    reason_prefix="Slurm says: ",
)


def _make(name: str, config: ClusterConfig, partition: Partition) -> Orchestrator:
    from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator

    return SlurmOrchestrator(name, typed_config(SlurmCluster, config), partition)


ENGINE = EngineFactory(SCHEDULER, _make, task_settings=("mounted_at", "queue"))
