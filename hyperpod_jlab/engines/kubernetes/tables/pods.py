"""Pods for the tables: node, owner and requests of each. Rows are small, because clusters have thousands of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.resources import milli

ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that hold their requested resources."""

USER_LABELS = ("hyperpod-jlab/user", "sagemaker.user/created-by")
"""Labels and annotations that name an object's user: ours, and those of HyperPod's command line (research, aws.md 2.6)."""

_JOB_LABELS = (
    ("training.kubeflow.org/job-name", "pytorchjob"),
    ("jobset.sigs.k8s.io/jobset-name", "trainjob"),
    ("HPJob", "hyperpodpytorchjob"),
    ("batch.kubernetes.io/job-name", "job"),
    ("job-name", "job"),
)
"""Labels with which operators mark a job's pods, and the kind of job."""

_MAX_TEXT = 600

Amounts = tuple[tuple[str, int], ...]
"""Resources by Kubernetes name, in thousandths."""


@dataclass(frozen=True, slots=True)
class PodRow:
    """A pod that holds its requested resources, or waits for them.

    Attributes:
        uid: Its uid, or a substitute.
        node: Its node, or None.
        user: Its user, if known.
        job: The name of its job, or None.
        kind: The job's kind in lower case, else that of its owner (``daemonset``), else ``pod``.
        requests: Its requests.
        problem: Why it does not run, as Kubernetes' reason and message; None when it runs or is
            just starting.
    """

    uid: str
    namespace: str
    name: str
    node: str | None
    user: str | None
    run_id: str | None
    job: str | None
    kind: str
    requests: Amounts
    problem: tuple[str, str] | None = None

    @property
    def is_node_pod(self) -> bool:
        """Whether it belongs to its node and survives a drain."""
        return self.kind in {"daemonset", "node"}

    @property
    def owner(self) -> str:
        """Its user, else its namespace."""
        return self.user or self.namespace


def pod_row(pod: Mapping[str, Any]) -> PodRow | None:
    """The row of a pod, or None for an ended one, which holds nothing."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    if status.get("phase") in {"Succeeded", "Failed"}:
        return None
    labels = meta.get("labels") or {}
    job, kind = _owner(meta, labels)
    return PodRow(
        uid=str(meta.get("uid") or f"{meta.get('namespace')}/{meta['name']}"),
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta["name"]),
        node=spec.get("nodeName") or None,
        user=find_user(meta),
        run_id=labels.get(RUN_LABEL),
        job=job,
        kind=kind,
        requests=sum_container_requests(spec),
        problem=_find_problem(status),
    )


_NORMAL_REASONS = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Waiting reasons of containers that are about to start."""


def _find_problem(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a pod does not run: a container's waiting reason, the last end of a restarting container, or why no node accepts it."""
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in containers:
        waiting_state = (container.get("state") or {}).get("waiting") or {}
        if str(waiting_state.get("reason") or "") in _NORMAL_REASONS:
            continue
        last = (container.get("lastState") or {}).get("terminated") or {}
        if last.get("reason") in {"OOMKilled", "ContainerCannotRun", "StartError"}:
            return str(last["reason"]), str(last.get("message") or "")[:_MAX_TEXT]
        return str(waiting_state["reason"]), str(waiting_state.get("message") or "")[:_MAX_TEXT]
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            reason = str(condition.get("reason") or "Unschedulable")
            return reason, str(condition.get("message") or "")[:_MAX_TEXT]
    return None


def find_user(meta: Mapping[str, Any]) -> str | None:
    """An object's user, from its labels and annotations."""
    for metadata_map in (meta.get("annotations") or {}, meta.get("labels") or {}):
        for name in USER_LABELS:
            if metadata_map.get(name):
                return str(metadata_map[name])
    return None


def _owner(meta: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[str | None, str]:
    for label, kind in _JOB_LABELS:
        if labels.get(label):
            return str(labels[label]), kind
    for owner in meta.get("ownerReferences") or []:
        if owner.get("controller"):
            kind = str(owner.get("kind", "")).lower()
            return (None if kind == "node" else str(owner.get("name"))), kind
    return None, "pod"


def sum_container_requests(spec: Mapping[str, Any]) -> Amounts:
    """A pod's requests: its containers with its sidecars, or an init container's larger request, plus the overhead.

    Computed like the scheduler (k8s.io/component-helpers/resource, PodRequests).
    """
    running: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(running, _requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        requested = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, requested)
            requested = {}
        for name in {*requested, *sidecars}:
            peak[name] = max(peak.get(name, 0), requested.get(name, 0) + sidecars.get(name, 0))
    _add(running, sidecars)
    for name, amount in peak.items():
        running[name] = max(running.get(name, 0), amount)
    running.update(_requests(spec))  # a pod may set requests for all its containers together
    _add(running, {name: milli(text) for name, text in (spec.get("overhead") or {}).items()})
    return tuple(sorted((name, amount) for name, amount in running.items() if amount))


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    return dict(parse_amounts(container.get("resources") or {}))


def parse_amounts(resources: Mapping[str, Any]) -> Amounts:
    """Parse a ``resources`` field with requests and limits; limits count if nothing is requested."""
    requested = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return tuple(sorted((name, milli(text)) for name, text in requested.items()))


def _add(totals: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, 0) + amount


def sum_pod_requests(pods: Iterable[PodRow]) -> dict[str, int]:
    """The total requests of several pods."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.requests:
            total[name] = total.get(name, 0) + amount
    return total


def group_by_node(pods: Iterable[PodRow]) -> dict[str, list[PodRow]]:
    """The pods of each node; those without a node are left out."""
    pods_by_node: dict[str, list[PodRow]] = {}
    for pod in pods:
        if pod.node is not None:
            pods_by_node.setdefault(pod.node, []).append(pod)
    return pods_by_node


def job_names(pods: Sequence[PodRow], namespace: str) -> tuple[str, ...]:
    """The jobs of the pods, each once, named as in the job table; pods without a job by their own name, without the node's own pods.

    Args:
        pods: The pods.
        namespace: The namespace that is omitted from names.
    """
    return tuple(dict.fromkeys(_job_name(pod, namespace) for pod in pods if not pod.is_node_pod))


def _job_name(pod: PodRow, namespace: str) -> str:
    name = pod.run_id or pod.job or pod.name
    return name if pod.namespace == namespace else f"{pod.namespace}/{name}"
