"""Nodes of Slurm that HyperPod repairs.

HyperPod repairs a node that is set to ``fail`` with the reason ``Action:Replace`` or ``Action:Reboot`` (AWS' documentation of manual
recovery); it keeps its name, and the reason until the repair is over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hyperpod_jlab.model.repair import NodeRepair
from hyperpod_jlab.orchestrators.slurm.tables.nodes import SlurmNode

_ORDER = re.compile(r"Action:(Replace|Reboot)")
_ACTIONS: Mapping[str, NodeRepair] = {"Replace": "replace", "Reboot": "reboot"}


def ordered_repairs(nodes: Mapping[str, SlurmNode]) -> dict[str, NodeRepair]:
    """What HyperPod does to nodes, by their names, as their reasons say."""
    return {
        name: _ACTIONS[found[1]]
        for name, node in nodes.items()
        if node.reason and not node.usable and (found := _ORDER.fullmatch(node.reason.strip()))
    }
