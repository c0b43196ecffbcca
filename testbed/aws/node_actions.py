"""SageMaker: nodes are rebooted and replaced. What has begun ends with `finish_repairs`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from testbed.aws.lookup import cluster_of
from testbed.aws.operations import Request
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster, Event, Node

_BUSY = frozenset({"Pending", "SystemUpdating", "DeepHealthCheckInProgress"})
_GONE = frozenset({"ShuttingDown", "NotFound"})

Refusal = tuple[str, str]
"""A code and a sentence."""


def batch_reboot_cluster_nodes(request: Request) -> dict[str, Any]:
    return _each(request, _reboot)


def batch_replace_cluster_nodes(request: Request) -> dict[str, Any]:
    return _each(request, _replace)


def finish_repairs(cluster: Cluster) -> None:
    """What was begun is over: instances that start run, those that end are gone."""
    cluster.nodes = [node for node in cluster.nodes if node.status != "ShuttingDown"]
    for node in cluster.nodes:
        if node.status == "Pending":
            node.status, node.message = "Running", None


def _each(request: Request, act: Callable[[Cluster, Node], Refusal | None]) -> dict[str, Any]:
    cluster, given = cluster_of(request), request.given
    if "NodeIds" not in given and "NodeLogicalIds" not in given:
        raise ApiError("ValidationException", "Give NodeIds, NodeLogicalIds or both")
    if "NodeLogicalIds" in given:
        raise ApiError("TestbedHasNone", "testbed/aws has no logical ids of nodes", 501)
    nodes = {node.instance_id: node for node in cluster.nodes}
    done, failed = [], []
    for name in dict.fromkeys(given["NodeIds"]):
        refusal = (
            _state_refusal(nodes[name]) or act(cluster, nodes[name])
            if name in nodes
            else ("InstanceIdNotFound", f"Instance {name} does not exist in the cluster.")
        )
        if refusal is None:
            done.append(name)
        else:
            failed.append({"NodeId": name, "ErrorCode": refusal[0], "Message": refusal[1]})
    # The model wants at least one where the list is given at all.
    return {**({"Successful": done} if done else {}), "Failed": failed}


def _state_refusal(node: Node) -> Refusal | None:
    if node.status in _BUSY:
        return ("InstanceIdInUse", f"Another operation is already in progress for {node.instance_id}.")
    if node.status in _GONE:
        return "InvalidInstanceStatus", f"{node.instance_id} is {node.status}."
    return None


def _reboot(cluster: Cluster, node: Node) -> Refusal | None:
    node.status, node.message = "Pending", "The instance is being rebooted."
    _happened(cluster, node, "Instance is being rebooted.")
    return None


def _replace(cluster: Cluster, node: Node) -> Refusal | None:
    group = next(group for group in cluster.groups if group.name == node.group)
    if group.slurm_node_type == "Controller":
        return "InvalidInstanceStatus", "Slurm controller nodes cannot be replaced."
    launched = max(one.launched for one in cluster.nodes) + timedelta(minutes=1)
    made = cluster.add_node(group, address=node.address, launched=launched)
    made.status, made.message = "Pending", f"The instance replaces {node.instance_id}."
    node.status, node.message = "ShuttingDown", f"The instance is replaced by {made.instance_id}."
    _happened(cluster, node, f"Instance is being replaced by {made.instance_id}.")
    return None


def _happened(cluster: Cluster, node: Node, words: str) -> None:
    """Add what was begun to the cluster's events, a second after the last one."""
    last = max((event.time for event in cluster.events), default=cluster.created)
    cluster.events.append(
        Event(
            last + timedelta(seconds=1),
            words,
            resource="Instance",
            group=node.group,
            instance=node.instance_id,
            metadata={"Instance": {"LcsExecutionState": "Pending"}},
        )
    )
