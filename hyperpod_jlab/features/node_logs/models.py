"""Logs of HyperPod's nodes: which there are, their lines, and places in them from which reading goes on."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.wire import HIDDEN, Time, Wire, shown

LOG_KINDS = {
    "lifecycle": "LifecycleConfig",
    "health": "SagemakerHealthMonitoringAgent",
    "deep-health-check": "DeepHealthCheckResults",
}
"""Our words for the kinds of logs, and how AWS begins the names of their streams."""

NODE_KINDS = ("lifecycle", "health")
"""The kinds of which each node has a log of its own; those of deep health checks are the cluster's."""


@dataclass(frozen=True, order=True)
class NodeLogPosition:
    """A place in a log: behind so many lines of a millisecond. AWS gives lines no numbers, but keeps their order.

    Attributes:
        milliseconds: Time of the last line before the place (Unix time).
        seen: How many lines of this millisecond lie before the place.
    """

    milliseconds: int
    seen: int


BEGIN = NodeLogPosition(0, 0)
"""Before the first line of a log."""


@dataclass(frozen=True)
class PlacedLine:
    """A line of a log, and the place behind it."""

    stream: str
    text: str
    place: NodeLogPosition


@dataclass(frozen=True)
class NodeLog(Wire):
    """A log that a cluster's node, or a check of the cluster, has written.

    Attributes:
        stream: AWS' name for it.
        last_at: When its last line was written (Unix seconds; AWS says it with a delay of up to an hour), or None.
    """

    stream: str
    last_at: Time | None = None

    @property
    @shown
    def kind(self) -> str:
        """Our word for its kind; AWS' own where there is none."""
        first = self.stream.partition("/")[0]
        return next((word for word, name in LOG_KINDS.items() if name == first), first)

    @property
    @shown
    def instance_group(self) -> str | None:
        """The instance group of the node that writes it; None where it is of no single node."""
        return self._parts[0] if self._parts else None

    @property
    @shown
    def instance(self) -> str | None:
        """The instance that writes it; None where it is of no single node."""
        return self._parts[1] if self._parts else None

    @property
    def _parts(self) -> list[str] | None:
        parts = self.stream.split("/")
        return parts[1:] if len(parts) == 3 and self.kind in NODE_KINDS else None


@dataclass(frozen=True)
class NodeLogLine(Wire):
    """A line of a node's log.

    Attributes:
        time: When it was written (Unix seconds).
        log: The log that it stands in.
        line: Its text.
        cursor: Where to go on behind it, in all logs that were asked for.
    """

    time: Time
    log: NodeLog = field(metadata=HIDDEN)
    line: str
    cursor: str

    @property
    @shown
    def stream(self) -> str:
        """The log's name."""
        return self.log.stream

    @property
    @shown
    def kind(self) -> str:
        """The log's kind."""
        return self.log.kind


def encode_cursor(places: Mapping[str, NodeLogPosition]) -> str:
    """Places in several logs as one text."""
    plain = {stream: [place.milliseconds, place.seen] for stream, place in places.items()}
    text = json.dumps(plain, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode_cursor(cursor: str) -> dict[str, NodeLogPosition]:
    """The places that a cursor holds.

    Raises:
        InvalidInputError: It is no such cursor.
    """
    try:
        plain = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        places = {stream: NodeLogPosition(*map(_whole, pair)) for stream, pair in plain.items()}
    except (AttributeError, TypeError, ValueError, RecursionError, binascii.Error) as error:
        raise invalid_cursor() from error
    return places


def invalid_cursor() -> InvalidInputError:
    """The error for a cursor that is none, or one of other logs."""
    return InvalidInputError(
        "this is no cursor of these logs",
        code="invalid_cursor",
        hint="take it from a line of the same logs in --json",
        detail={"field": "cursor"},
    )


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError(value)
    return value
