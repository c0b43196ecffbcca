"""The part of a pod's state that matters for its log: which container runs, which ran before, and whether another will follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

_FINAL = {"Succeeded", "Failed"}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended: `ended_at` is in Unix seconds, `reason` is the kubelet's, such as ``Error`` or ``OOMKilled``."""

    container_id: str
    code: int | None
    reason: str | None
    ended_at: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container of a pod, by name. Each restart is another container with its own id and log.

    Attributes:
        restart: Number of restarts before the newest started one.
        container_id: The newest started one; "" when none has started.
        started_at: When that one started (Unix seconds).
        exit: How that one ended; None while it runs.
        previous: How the one before ended, while the kubelet keeps it.
        waiting: The kubelet's reason why none runs, such as ``ImagePullBackOff``; `message` is its
            text.
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
        uid: A pod of the same name with another uid is another pod.
        phase: ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``.
        restart_policy: ``Always``, ``OnFailure`` or ``Never``.
        containers: Those that the kubelet has reported, by name, including init containers.
        names: The names of all containers.
    """

    name: str
    uid: str
    phase: str
    node: str | None
    deleting: bool
    restart_policy: str
    containers: Mapping[str, ContainerState]
    names: tuple[str, ...] = ()

    def container(self, name: str) -> ContainerState:
        """A container by name; one that the kubelet has not reported yet has not started."""
        return self.containers.get(name) or ContainerState(name)

    def is_restartable(self, name: str) -> bool:
        """Whether the container may restart, now or after it ends."""
        if self.phase in _FINAL or self.deleting:
            return False
        exit_ = self.container(name).exit
        if exit_ is None or self.restart_policy == "Always":
            return True
        return self.restart_policy == "OnFailure" and exit_.code != 0


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """Reduce a pod object to its state; usable as `reduce` of an `Informer` of pods."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    entries = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
        *(status.get("ephemeralContainerStatuses") or []),
    ]
    return PodState(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        phase=str(status.get("phase") or "Pending"),
        node=spec.get("nodeName") or None,
        deleting=bool(metadata.get("deletionTimestamp")),
        restart_policy=str(spec.get("restartPolicy") or "Always"),
        containers={str(container["name"]): _container(container) for container in entries},
        names=tuple(str(container["name"]) for key in _CONTAINERS for container in spec.get(key) or []),
    )


def _container(status: Mapping[str, Any]) -> ContainerState:
    state, last = status.get("state") or {}, status.get("lastState") or {}
    restart = int(status.get("restartCount") or 0)
    name = str(status["name"])
    waiting = state.get("waiting")
    previous = _exit(last.get("terminated"))
    if waiting is None:
        running = state.get("running")
        exit_state = _exit(state.get("terminated"))
        return ContainerState(
            name=name,
            restart=restart,
            container_id=(exit_state.container_id if exit_state else "") or str(status.get("containerID", "")),
            running=running is not None,
            started_at=parse_timestamp((running or state.get("terminated") or {}).get("startedAt")),
            exit=exit_state,
            previous=previous,
        )
    # Between two containers, the newest started one is the one that ended last.
    return ContainerState(
        name=name,
        restart=restart,
        container_id=previous.container_id if previous else "",
        started_at=parse_timestamp((last.get("terminated") or {}).get("startedAt")),
        exit=previous,
        waiting=str(waiting.get("reason") or "") or None,
        message=str(waiting.get("message") or "")[:600] or None,
    )


def _exit(terminated: Mapping[str, Any] | None) -> Exit | None:
    if terminated is None:
        return None
    code = terminated.get("exitCode")
    return Exit(
        container_id=str(terminated.get("containerID", "")),
        code=int(code) if code is not None else None,
        reason=str(terminated.get("reason") or "") or None,
        ended_at=parse_timestamp(terminated.get("finishedAt")),
        message=str(terminated.get("message") or "")[:600] or None,
    )


def parse_timestamp(text: Any) -> float | None:
    """Parse a time of the API server to Unix seconds; None for anything else."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


class PodChanges(Protocol):
    """Reports changes of a pod's state, so that a follower need not poll: backed by an `Informer` of pods."""

    @property
    def version(self) -> int:
        """Increases with each change."""
        ...

    async def changed(self, since_time: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since_time`, or until the timeout (seconds); returns `version`."""
        ...
