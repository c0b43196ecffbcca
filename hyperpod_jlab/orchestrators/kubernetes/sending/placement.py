"""Where a run's pods may run, and what their queue is told of it."""

from __future__ import annotations

from hyperpod_jlab.model.spec import JobSpec

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
INSTANCE_GROUP = "sagemaker.amazonaws.com/instance-group-name"
HEALTH = "sagemaker.amazonaws.com/node-health-status"

LABEL_FIELDS = {
    INSTANCE_TYPE: "resources.instance_type",
    INSTANCE_GROUP: "resources.instance_group",
}
"""The spec's field for a label."""

_TOPOLOGY = {
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
    "required": "kueue.x-k8s.io/podset-required-topology",
}


def node_selector(spec: JobSpec, *, hyperpod: bool) -> dict[str, str]:
    """The labels that a node must have; on HyperPod it must be a healthy one."""
    chosen: dict[str, str] = {}
    if spec.resources.instance_type is not None:
        chosen[INSTANCE_TYPE] = spec.resources.instance_type
    if spec.resources.instance_group is not None:
        chosen[INSTANCE_GROUP] = spec.resources.instance_group
    if hyperpod:
        chosen[HEALTH] = "Schedulable"
    return chosen


def topology(spec: JobSpec) -> dict[str, str]:
    """Kueue's annotations for pods that are to be near each other."""
    asked = spec.kubernetes.topology
    return {} if asked is None else {_TOPOLOGY[asked.mode]: asked.level}
