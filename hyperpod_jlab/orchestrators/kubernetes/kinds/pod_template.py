"""A pod's template as most kinds take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Pod


def pod_template(pod: Pod, container: str, *, restart: str | None = None) -> dict[str, Any]:
    """The template.

    Args:
        pod: What the pod is.
        container: The name that the kind wants its container to have.
        restart: The restart policy, where it stands in the template.
    """
    metadata: dict[str, Any] = {"labels": dict(pod.labels)}
    if pod.annotations:
        metadata["annotations"] = dict(pod.annotations)
    spec: dict[str, Any] = {}
    if restart is not None:
        spec["restartPolicy"] = restart
    if pod.node_selector:
        spec["nodeSelector"] = dict(pod.node_selector)
    if pod.tolerations:
        spec["tolerations"] = [dict(one) for one in pod.tolerations]
    if pod.priority_class is not None:
        spec["priorityClassName"] = pod.priority_class
    if pod.service_account is not None:
        spec["serviceAccountName"] = pod.service_account
    spec["containers"] = [_container(pod, container)]
    spec["volumes"] = [dict(one) for one in pod.volumes]
    return {"metadata": metadata, "spec": spec}


def _container(pod: Pod, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "image": pod.image,
        "command": list(pod.command),
        "env": [dict(one) for one in pod.env],
        "volumeMounts": [dict(one) for one in pod.mounts],
    }
    if pod.resources:
        made["resources"] = requests(pod.resources)
    return made


def requests(resources: Mapping[str, str]) -> dict[str, Any]:
    """Resources of a container: as much as asked for, and no more."""
    return {"limits": dict(resources), "requests": dict(resources)}
