"""What code outside an engine has to know of a scheduler: the facts behind joins with AWS and the words of sentences. Each engine has one."""

from __future__ import annotations

from dataclasses import dataclass

SLURM, KUBERNETES = "slurm", "kubernetes"
"""Names of the engines for the two orchestrators that HyperPod has (`Orchestrator` in SageMaker's API: none or Slurm, and Eks)."""


@dataclass(frozen=True)
class Scheduler:
    """A kind of scheduler.

    Attributes:
        name: The engine's name, as `orchestrator` in the configuration.
        side: Where jobs see the storage partition, such as ``pod``.
        runs_locally: Whether its jobs run on this machine.
        names_nodes_by_host: Whether a HyperPod node is called after its host, and a replaced one usually keeps its name; else it is called
            after its instance, and a replaced one has another name.
        after_node_loss: What becomes of a job whose node ends, a sentence without its subject; None where that is not known.
        after_repair: What becomes of a run that runs on a node under repair.
        reason_prefix: How a reason begins that is quoted from the scheduler.
    """

    name: str
    side: str
    runs_locally: bool = False
    names_nodes_by_host: bool = True
    after_node_loss: str | None = None
    after_repair: str = "it may have to be submitted again"
    reason_prefix: str = ""
