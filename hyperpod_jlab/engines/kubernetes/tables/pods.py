"""Pods as the tables need them: where each is, whose, and what it has asked for there. Small rows, for clusters have thousands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from hyperpod_jlab.engines.kubernetes.submit.resources import milli

ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that hold what they asked for."""

USER_LABELS = ("hyperpod-jlab/user", "sagemaker.user/created-by")
"""Labels and annotations that say whose something is: ours, and that of HyperPod's command line (research, aws.md 2.6)."""

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
"""Resources by their names in Kubernetes, in thousandths."""


@dataclass(frozen=True, slots=True)
class PodRow:
    """A pod that holds, or waits for, what it asked for.

    Attributes:
        uid: Its own id, or as good a one.
        node: The node that it was given, or None.
        user: Whose it is, as far as it says so.
        job: The name of the job that it is of, or None.
        kind: The job's kind in lower case, else that of what it is of (``daemonset``), else ``pod``.
        requests: What it asked for.
        problem: Why it does not run, in Kubernetes' words: a reason and a message; None when it runs, or has only begun to start.
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
        """Whether it belongs to its node and stays when the node is drained."""
        return self.kind in {"daemonset", "node"}

    @property
    def owner(self) -> str:
        """Whose it is; where it does not say so, its namespace's."""
        return self.user or self.namespace


def pod_row(pod: Mapping[str, Any]) -> PodRow | None:
    """The row of a pod, or None for one that has ended and holds nothing."""
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
"""What containers that are about to start wait for."""


def _find_problem(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a pod does not run: what a container of it waits for, how one ended last that is started again, or why no node takes it."""
    containers = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
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
    """Whose an object is, as far as its labels and annotations say so."""
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
    """What a pod asks its node for: its containers together with its sidecars, or more where an init container asks for more at its time, and the overhead.

    As the scheduler counts (k8s.io/component-helpers/resource, PodRequests).
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
    running.update(_requests(spec))  # a pod may say for all its containers together
    _add(running, {name: milli(text) for name, text in (spec.get("overhead") or {}).items()})
    return tuple(sorted((name, amount) for name, amount in running.items() if amount))


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    return dict(parse_amounts(container.get("resources") or {}))


def parse_amounts(resources: Mapping[str, Any]) -> Amounts:
    """What ``resources`` with requests and limits ask for; limits count where nothing is requested."""
    requested = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return tuple(sorted((name, milli(text)) for name, text in requested.items()))


def _add(totals: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, 0) + amount


def sum_pod_requests(pods: Iterable[PodRow]) -> dict[str, int]:
    """What several pods hold together."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.requests:
            total[name] = total.get(name, 0) + amount
    return total


def group_by_node(pods: Iterable[PodRow]) -> dict[str, list[PodRow]]:
    """The pods of each node; those that wait for one are left out."""
    pods_by_node: dict[str, list[PodRow]] = {}
    for pod in pods:
        if pod.node is not None:
            pods_by_node.setdefault(pod.node, []).append(pod)
    return pods_by_node


def job_names(pods: Sequence[PodRow], namespace: str) -> tuple[str, ...]:
    """The jobs that pods are of, each once, as the table of jobs calls them; pods of no job by their own name, those of the node itself not at all.

    Args:
        pods: The pods.
        namespace: The namespace that need not be named.
    """
    return tuple(dict.fromkeys(_job_name(pod, namespace) for pod in pods if not pod.is_node_pod))


def _job_name(pod: PodRow, namespace: str) -> str:
    name = pod.run_id or pod.job or pod.name
    return name if pod.namespace == namespace else f"{pod.namespace}/{name}"
