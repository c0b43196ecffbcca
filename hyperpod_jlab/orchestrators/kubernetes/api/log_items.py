"""What comes out of a pod's log: pieces of lines, and what happened to their container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hyperpod_jlab.orchestrators.kubernetes.api.log_cursor import Cursor


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, or a piece of a long one. The bytes are `data`, and a newline after it where `ends` is true.

    They are the container's own, but for a carriage return just before a newline, which containerd drops.

    Lines come whole, but for those of more than 64 KiB, those cut by the end of a connection (what is left of one comes later), and a last line without newline.

    Attributes:
        stamp: When the line began (Unix nanoseconds, by the node's clock).
        data: Its bytes, without the newline.
        starts: Whether a line begins here.
        ends: Whether it ends here, with a newline; the last line of a container may have none.
    """

    stamp: int
    data: bytes
    starts: bool = True
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Started:
    """A container's log begins here.

    Attributes:
        restart: Number of restarts before it.
        container_id: Which container.
        at: When it began (Unix seconds), as far as known.
    """

    restart: int
    container_id: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A container has ended, and its log was read to its end.

    Attributes:
        restart: Number of restarts before it.
        container_id: Which container.
        exit_code: Its exit code, None when nobody knows.
        reason: The kubelet's word, such as ``Error`` or ``OOMKilled``.
        at: When it ended (Unix seconds), as far as known.
    """

    restart: int
    container_id: str
    exit_code: int | None
    reason: str | None
    at: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines are, or may be, missing here: the cluster has them no more.

    Attributes:
        reason: ``rotated``: the kubelet began a new file while nobody read. ``restarted``: more than one container ended while nobody read.
            ``deleted``: the pod, or what was left of an ended container, was removed while nobody read.
    """

    reason: Literal["rotated", "restarted", "deleted"]


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing more can come.

    Attributes:
        reason: ``ended``: the container has ended for good. ``deleted``: there is no such pod any more. ``replaced``: a pod of the same name has taken its place.
    """

    reason: Literal["ended", "deleted", "replaced"]


Item: TypeAlias = Entry | Started | Ended | Gap | Over


@dataclass(frozen=True, slots=True)
class Portion:
    """Some items in their order (there may be none), and where one stands after the last of them."""

    items: tuple[Item, ...]
    cursor: Cursor
