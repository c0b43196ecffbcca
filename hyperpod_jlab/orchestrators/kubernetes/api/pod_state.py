"""What of a pod's state matters for its log: which container runs, which ran before, and whether another will."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_FINAL = {"Succeeded", "Failed"}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended.

    Attributes:
        container_id: Which container.
        code: Its exit code, None when nobody knows.
        reason: The kubelet's word, such as ``Error`` or ``OOMKilled``.
        at: When (Unix seconds), as far as known.
        message: The runtime's sentence to it.
    """

    container_id: str
    code: int | None
    reason: str | None
    at: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container of a pod, by name; each restart of it is another container, with its own id and its own log.

    Attributes:
        name: Its name.
        restart: Number of restarts before the newest one that has begun.
        container_id: The newest one that has begun; "" when none has.
        running: Whether that one runs.
        started_at: When it began (Unix seconds), as far as known.
        exit: How that one ended; None while it runs.
        previous: How the one before ended, as long as the kubelet keeps it.
        waiting: The kubelet's word for why none runs, such as ``ImagePullBackOff``.
        message: The kubelet's sentence to it.
    """

    name: str
    restart: int = 0
    container_id: str = ""
    running: bool = False
    started_at: float | None = None
    exit: Exit | None = None
    previous: Exit | None = None
    waiting: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod.

    Attributes:
        name: Its name.
        uid: Its uid: a pod of the same name with another uid is another pod.
        version: Its resource version.
        phase: ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``.
        node: The node it is bound to, or None.
        deleting: Whether it is being deleted.
        restart_policy: ``Always``, ``OnFailure`` or ``Never``.
        containers: Its containers by name, those that run first (init) too, as far as the kubelet has spoken of them.
        names: The names of all its containers.
    """

    name: str
    uid: str
    version: str
    phase: str
    node: str | None
    deleting: bool
    restart_policy: str
    containers: Mapping[str, ContainerState]
    names: tuple[str, ...] = ()

    def container(self, name: str) -> ContainerState:
        """A container by its name; one of which the kubelet has not spoken yet has not begun."""
        return self.containers.get(name) or ContainerState(name)

    def starts_again(self, name: str) -> bool:
        """Whether another container of that name may follow the newest one; for one that runs: when it ends."""
        if self.phase in _FINAL or self.deleting:
            return False
        exit_ = self.container(name).exit
        if exit_ is None or self.restart_policy == "Always":
            return True
        return self.restart_policy == "OnFailure" and exit_.code != 0


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """A pod object's state; as `reduce` of a `Watch` of pods it makes its rows."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    said = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
        *(status.get("ephemeralContainerStatuses") or []),
    ]
    return PodState(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        phase=str(status.get("phase") or "Pending"),
        node=spec.get("nodeName") or None,
        deleting=bool(metadata.get("deletionTimestamp")),
        restart_policy=str(spec.get("restartPolicy") or "Always"),
        containers={str(one["name"]): _container(one) for one in said},
        names=tuple(str(one["name"]) for key in _CONTAINERS for one in spec.get(key) or []),
    )


def _container(said: Mapping[str, Any]) -> ContainerState:
    state, last = said.get("state") or {}, said.get("lastState") or {}
    restart = int(said.get("restartCount") or 0)
    name = str(said["name"])
    waiting = state.get("waiting")
    previous = _exit(last.get("terminated"))
    if waiting is None:
        running = state.get("running")
        ended = _exit(state.get("terminated"))
        return ContainerState(
            name=name,
            restart=restart,
            container_id=(ended.container_id if ended else "") or str(said.get("containerID", "")),
            running=running is not None,
            started_at=when((running or state.get("terminated") or {}).get("startedAt")),
            exit=ended,
            previous=previous,
        )
    # Between two containers the newest that has begun is the one that ended last.
    return ContainerState(
        name=name,
        restart=restart,
        container_id=previous.container_id if previous else "",
        started_at=when((last.get("terminated") or {}).get("startedAt")),
        exit=previous,
        waiting=str(waiting.get("reason") or "") or None,
        message=str(waiting.get("message") or "")[:600] or None,
    )


def _exit(said: Mapping[str, Any] | None) -> Exit | None:
    if said is None:
        return None
    code = said.get("exitCode")
    return Exit(
        container_id=str(said.get("containerID", "")),
        code=int(code) if code is not None else None,
        reason=str(said.get("reason") or "") or None,
        at=when(said.get("finishedAt")),
        message=str(said.get("message") or "")[:600] or None,
    )


def when(text: Any) -> float | None:
    """A time as the API server writes it, in Unix seconds; None for anything else."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
