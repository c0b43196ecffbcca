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

_LONGEST = 600

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
        trouble: Why it does not run, in Kubernetes' words: a reason and a message; None when it runs, or has only begun to start.
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
    trouble: tuple[str, str] | None = None

    @property
    def of_the_node(self) -> bool:
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
        user=user_of(meta),
        run_id=labels.get(RUN_LABEL),
        job=job,
        kind=kind,
        requests=requests_of(spec),
        trouble=_trouble(status),
    )


_NO_TROUBLE = frozenset({"", "ContainerCreating", "PodInitializing"})
"""What containers that are about to start wait for."""


def _trouble(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a pod does not run: what a container of it waits for, how one ended last that is started again, or why no node takes it."""
    containers = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    for one in containers:
        waits = (one.get("state") or {}).get("waiting") or {}
        if str(waits.get("reason") or "") in _NO_TROUBLE:
            continue
        last = (one.get("lastState") or {}).get("terminated") or {}
        if last.get("reason") in {"OOMKilled", "ContainerCannotRun", "StartError"}:
            return str(last["reason"]), str(last.get("message") or "")[:_LONGEST]
        return str(waits["reason"]), str(waits.get("message") or "")[:_LONGEST]
    for one in status.get("conditions") or []:
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            reason = str(one.get("reason") or "Unschedulable")
            return reason, str(one.get("message") or "")[:_LONGEST]
    return None


def user_of(meta: Mapping[str, Any]) -> str | None:
    """Whose an object is, as far as its labels and annotations say so."""
    for said in (meta.get("annotations") or {}, meta.get("labels") or {}):
        for name in USER_LABELS:
            if said.get(name):
                return str(said[name])
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


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """What a pod asks its node for: its containers together with its sidecars, or more where an init container asks for more at its time, and the overhead.

    As the scheduler counts (k8s.io/component-helpers/resource, PodRequests).
    """
    running: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(running, _requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = {}
        for name in {*asked, *sidecars}:
            peak[name] = max(peak.get(name, 0), asked.get(name, 0) + sidecars.get(name, 0))
    _add(running, sidecars)
    for name, amount in peak.items():
        running[name] = max(running.get(name, 0), amount)
    running.update(_requests(spec))  # a pod may say for all its containers together
    _add(running, {name: milli(text) for name, text in (spec.get("overhead") or {}).items()})
    return tuple(sorted((name, amount) for name, amount in running.items() if amount))


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    return dict(amounts_of(container.get("resources") or {}))


def amounts_of(resources: Mapping[str, Any]) -> Amounts:
    """What ``resources`` with requests and limits ask for; limits count where nothing is requested."""
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return tuple(sorted((name, milli(text)) for name, text in asked.items()))


def _add(to: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + amount


def summed(pods: Iterable[PodRow]) -> dict[str, int]:
    """What several pods hold together."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.requests:
            total[name] = total.get(name, 0) + amount
    return total


def by_node(pods: Iterable[PodRow]) -> dict[str, list[PodRow]]:
    """The pods of each node; those that wait for one are left out."""
    found: dict[str, list[PodRow]] = {}
    for pod in pods:
        if pod.node is not None:
            found.setdefault(pod.node, []).append(pod)
    return found


def job_names(pods: Sequence[PodRow], namespace: str) -> tuple[str, ...]:
    """The jobs that pods are of, each once, as the table of jobs calls them; pods of no job by their own name, those of the node itself not at all.

    Args:
        pods: The pods.
        namespace: The namespace that need not be named.
    """
    return tuple(dict.fromkeys(_job_name(pod, namespace) for pod in pods if not pod.of_the_node))


def _job_name(pod: PodRow, namespace: str) -> str:
    name = pod.run_id or pod.job or pod.name
    return name if pod.namespace == namespace else f"{pod.namespace}/{name}"
