"""What a pod's launcher is told of the others of its run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meeting:
    """Words of the launcher's command, in which the kubelet replaces each ``$(NAME)`` by that variable of the container.

    Attributes:
        node_rank: The pod's place among the run's nodes.
        master_addr: Name or address of node 0's pod.
        late: Whether a shell replaces them instead, once a program around the launcher has set the variables.
    """

    node_rank: str
    master_addr: str
    late: bool = False
