"""Facts about a scheduler that code outside its engine needs, for joins with AWS and for messages. Each engine defines one."""

from __future__ import annotations

from dataclasses import dataclass

SLURM, KUBERNETES = "slurm", "kubernetes"
"""Engine names of HyperPod's two orchestrators (`Orchestrator` in SageMaker's API: none or Slurm, and Eks)."""


@dataclass(frozen=True)
class Scheduler:
    """A kind of scheduler.

    Attributes:
        name: The engine's name, as `orchestrator` in the configuration.
        side: Where jobs see the storage partition, such as ``pod``.
        runs_locally: Whether its jobs run on this machine.
        names_nodes_by_host: Whether a HyperPod node is named after its host, and a replacement usually keeps the name; else it is named
            after its instance, and a replacement has another name.
        after_node_loss: What happens to a job whose node is lost, a sentence without its subject; None if unknown.
        after_repair: What happens to a run on a node under repair.
        reason_prefix: Prefix of a reason that quotes the scheduler.
    """

    name: str
    side: str
    runs_locally: bool = False
    names_nodes_by_host: bool = True
    after_node_loss: str | None = None
    after_repair: str = "it may have to be submitted again"
    reason_prefix: str = ""
