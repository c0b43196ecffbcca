"""Nodes of Kubernetes that HyperPod repairs: it says so in a label of theirs."""

from __future__ import annotations

from collections.abc import Mapping

from hyperpod_jlab.model.repair import NodeRepair
from hyperpod_jlab.orchestrators.kubernetes.tables.looks import NODES, Looks
from hyperpod_jlab.orchestrators.kubernetes.tables.node_state import HEALTH_LABEL
from hyperpod_jlab.orchestrators.kubernetes.tables.nodes import node_facts

_ACTIONS: Mapping[str, NodeRepair] = {
    "Unschedulable": "repair",
    "UnschedulablePendingReplacement": "replace",
    "UnschedulablePendingReboot": "reboot",
}


async def labelled_repairs(looks: Looks) -> dict[str, NodeRepair]:
    """What HyperPod does to nodes, by their names; nothing where they may not be seen.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    seen = await looks.everywhere(NODES, node_facts)
    found: dict[str, NodeRepair] = {}
    for node in seen.rows or ():
        action = _ACTIONS.get(dict(node.labels).get(HEALTH_LABEL, ""))
        if action is not None:
            found[node.name] = action
    return found
