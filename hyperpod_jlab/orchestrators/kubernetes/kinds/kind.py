"""What a kind of object has to know so that a run can be one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.kinds.meeting import Meeting


@dataclass(frozen=True)
class Pod:
    """One of the run's pods; all of them are alike.

    Attributes:
        image: Of its one container.
        command: Of the container.
        env: Of the container.
        mounts: Of the container.
        volumes: Of the pod.
        resources: Requests and limits of the container by resource.
        node_selector: Labels that its node must have.
        tolerations: Taints that its node may have.
        labels: Its own.
        annotations: Its own.
        priority_class: The cluster's priority class, or None.
        service_account: Its service account, or None for the namespace's default.
    """

    image: str
    command: Sequence[str]
    env: Sequence[Mapping[str, Any]] = ()
    mounts: Sequence[Mapping[str, Any]] = ()
    volumes: Sequence[Mapping[str, Any]] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority_class: str | None = None
    service_account: str | None = None


@dataclass(frozen=True)
class Wanted:
    """A run as an object of some kind.

    Attributes:
        name: The object's name.
        namespace: Its namespace.
        nodes: How many pods.
        pod: Each of them.
        labels: Of the object.
        annotations: Of the object.
        time_limit: Seconds after which it is ended, or None.
        anew: Whether pods that were deleted, evicted or lost with their node are to be replaced.
        retries: How often HyperPod may resume it on other nodes, or None for not at all.
        array: As an array: how many tasks, each a pod, and how many of them at once.
    """

    name: str
    namespace: str
    nodes: int
    pod: Pod
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    time_limit: int | None = None
    anew: bool = False
    retries: int | None = None
    array: tuple[int, int] | None = None


class Kind(Protocol):
    """A kind of object that runs a run.

    Attributes:
        name: As in an object's ``kind``.
        group: Its API group, such as ``kubeflow.org``.
        version: Its version there.
        plural: Its name in paths.
        container: The container of its pods in which the launcher runs.
        labels_pods: Whether its pods can be given labels of ours, such as the run's.
        suspend_in: The way to the part that has ``suspend``.
    """

    name: str
    group: str
    version: str
    plural: str
    container: str
    labels_pods: bool
    suspend_in: tuple[str, ...]

    def meeting(self, name: str, nodes: int) -> Meeting:
        """What the launchers of an object with this name and so many pods are told of each other."""
        ...

    def wrap(self, command: Sequence[str], nodes: int, *, anew: bool) -> list[str]:
        """The container's command for a launcher's command: the same, or a program of the kind's around it.

        With `anew` pods that were deleted or lost are to be replaced.
        """
        ...

    def manifest(self, wanted: Wanted) -> dict[str, Any]:
        """The object."""
        ...

    def companions(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Further objects that its pods need, which it owns; the owner is put in when the object is there."""
        ...

    def observe(self, job: Mapping[str, Any], now: float) -> Observation:
        """What the object says of its run; what it has beyond that is passed over.

        Args:
            job: The object as the API server gives it.
            now: When it was read (Unix seconds).
        """
        ...

    def pods_selector(self, name: str) -> str:
        """The label selector of the pods of an object with this name."""
        ...

    def node_rank(self, pod: Mapping[str, Any]) -> int | None:
        """A pod's place among the run's nodes, by its labels; None when they do not say."""
        ...


def jobs_path(kind: Kind, namespace: str | None) -> str:
    """Where a namespace's objects of a kind are; of all namespaces with None."""
    where = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"/apis/{kind.group}/{kind.version}{where}/{kind.plural}"


def head_of(
    kind: Kind, wanted: Wanted, annotations: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The part of an object that comes before its spec, with further annotations."""
    return {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": kind.name,
        "metadata": {
            "name": wanted.name,
            "namespace": wanted.namespace,
            "labels": dict(wanted.labels),
            "annotations": {**wanted.annotations, **annotations},
        },
    }


def suspension(kind: Kind, on: bool) -> dict[str, Any]:
    """The merge patch that holds an object of this kind, or lets it go on."""
    patch: dict[str, Any] = {"suspend": on}
    for name in reversed(kind.suspend_in):
        patch = {name: patch}
    return patch


def is_suspended(kind: Kind, job: Mapping[str, Any]) -> bool:
    """Whether an object's spec holds it."""
    part: Mapping[str, Any] = job
    for name in kind.suspend_in:
        part = part.get(name) or {}
    return bool(part.get("suspend"))


def labels_of(thing: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels of an object."""
    return (thing.get("metadata") or {}).get("labels") or {}


def number_label(thing: Mapping[str, Any], name: str) -> int | None:
    """A label that is a number."""
    text = str(labels_of(thing).get(name, ""))
    return int(text) if text.isdecimal() and len(text) < 9 else None
