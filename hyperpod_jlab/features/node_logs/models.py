"""Logs of HyperPod's nodes, and their lines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hyperpod_jlab.core.wire import HIDDEN, Time, Wire, wire_property

LOG_KINDS = {
    "lifecycle": "LifecycleConfig",
    "health": "SagemakerHealthMonitoringAgent",
    "deep-health-check": "DeepHealthCheckResults",
}
"""Our names of the kinds of logs, and AWS' prefixes of their stream names."""

NODE_KINDS = ("lifecycle", "health")
"""The kinds that each node has; logs of deep health checks belong to the cluster."""


@dataclass(frozen=True)
class NodeLog(Wire):
    """A log of a cluster's node, or of a check of the cluster.

    Attributes:
        stream: AWS' name of it.
        last_at: When its last line was written (Unix seconds; AWS reports it with a delay of up to an hour), or None.
    """

    stream: str
    last_at: Time | None = None

    @property
    @wire_property
    def kind(self) -> str:
        """Its kind; AWS' own name if we have none."""
        first = self.stream.partition("/")[0]
        return next((kind_name for kind_name, name in LOG_KINDS.items() if name == first), first)

    @property
    @wire_property
    def instance_group(self) -> str | None:
        """The instance group of the node that writes it; None if it is not a node's log."""
        return self._parts[0] if self._parts else None

    @property
    @wire_property
    def instance(self) -> str | None:
        """The instance that writes it; None if it is not a node's log."""
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
        log: Its log.
        line: Its text.
        cursor: Where to continue after it, in all requested logs.
    """

    time: Time
    log: NodeLog = field(metadata=HIDDEN)
    line: str
    cursor: str

    @property
    @wire_property
    def stream(self) -> str:
        """The log's name."""
        return self.log.stream

    @property
    @wire_property
    def kind(self) -> str:
        """The log's kind."""
        return self.log.kind
