"""Metrics of HyperPod clusters and their nodes: names, units, time series."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.wire import HIDDEN, As, Time, Wire, wire_property
from hyperpod_jlab.run.metrics import MetricSeries
from hyperpod_jlab.run.resources import RunResources

Unit = Literal["percent", "celsius", "bytes/s", "packets/s", "count"]


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: Its name, such as ``gpu-utilization``.
        unit: ``percent``, ``bytes/s``, ``packets/s`` or ``count``.
        meaning: What it measures.
    """

    name: str
    unit: Unit
    meaning: str


METRICS = {
    metric.name: metric
    for metric in (
        Metric("gpu-utilization", "percent", "time in which the GPUs were busy"),
        Metric("gpu-memory", "percent", "GPU memory in use"),
        Metric("gpu-temperature", "celsius", "temperature of the GPUs"),
        Metric("efa-received", "bytes/s", "received by a node's EFA devices"),
        Metric("efa-sent", "bytes/s", "sent by a node's EFA devices"),
        Metric("efa-dropped", "packets/s", "packets that a node's EFA devices dropped"),
        Metric("cpu", "percent", "CPU in use"),
        Metric("memory", "percent", "memory in use"),
        Metric("healthy", "percent", "nodes that passed their health checks and accept jobs"),
        Metric("deep-health-check", "percent", "nodes on which deep health checks run"),
        Metric("to-reboot", "percent", "nodes pending reboot"),
        Metric("to-replace", "percent", "nodes pending replacement"),
        Metric("nodes", "count", "nodes"),
        Metric("nodes-idle", "count", "nodes without a job"),
        Metric("nodes-failed", "count", "failed nodes"),
        Metric("gpus-idle", "count", "GPUs without a job"),
        Metric("jobs-running", "count", "running jobs"),
        Metric("jobs-waiting", "count", "waiting jobs"),
    )
}
"""All metrics by name, in display order. For a cluster, node metrics are the mean over its nodes."""


@dataclass(frozen=True)
class TimeRange:
    """A time range (Unix seconds), and the seconds over which each point is the mean or the sum."""

    begin: float
    end: float
    period: int


@dataclass(frozen=True)
class MetricPoint:
    """The value of a period, and when the period began."""

    time: Time
    value: float


def _rounded(value: float) -> float:
    # A rate that Prometheus computes again a second later differs in its last digits.
    return float(f"{value:.9g}")


Rounded = Annotated[float, As(float, _rounded)]
"""Serialized with nine digits."""

_Points = Annotated[
    tuple[tuple[float, float], ...],
    As(list[MetricPoint], lambda points: [MetricPoint(time, _rounded(value)) for time, value in points]),
]


@dataclass(frozen=True)
class TimeSeries(Wire):
    """A metric over time.

    Attributes:
        metric: The metric.
        points: The start of each period (Unix seconds) and its value, in time order; periods without a value are omitted.
    """

    metric: Metric = field(metadata=HIDDEN)
    points: _Points

    @property
    @wire_property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    @wire_property
    def unit(self) -> Unit:
        """The metric's unit."""
        return self.metric.unit

    @property
    @wire_property
    def meaning(self) -> str:
        """What is measured."""
        return self.metric.meaning

    @property
    def values(self) -> tuple[float, ...]:
        """The values alone."""
        return tuple(value for _, value in self.points)

    @property
    @wire_property
    def mean(self) -> Rounded:
        """The mean of the values; needs at least one."""
        return sum(self.values) / len(self.points)

    @property
    @wire_property
    def last(self) -> Rounded:
        """The last value."""
        return self.points[-1][1]

    @property
    @wire_property
    def lowest(self) -> Rounded:
        """The lowest value."""
        return min(self.values)

    @property
    @wire_property
    def highest(self) -> Rounded:
        """The highest value."""
        return max(self.values)


Source = Literal["CloudWatch", "Prometheus"]
"""Where measurements come from: Amazon CloudWatch, or Amazon Managed Service for Prometheus."""


@dataclass(frozen=True)
class MetricSet(Wire):
    """The metrics of a cluster, or of one of its nodes.

    Attributes:
        cluster: Name of the cluster.
        node: Instance id of the node; None: the whole cluster.
        window: The time range.
        source: The source.
        courses: The metrics with values, by name.
        missing: Names of the supported metrics without values.
        notes: Notes for the user.
    """

    cluster: str
    node: str | None
    window: TimeRange = field(metadata=HIDDEN)
    source: Source
    courses: Mapping[str, TimeSeries] = field(default_factory=dict, metadata=HIDDEN)
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    @wire_property
    def begin(self) -> Time:
        """Start of the time range."""
        return self.window.begin

    @property
    @wire_property
    def end(self) -> Time:
        """End of the time range."""
        return self.window.end

    @property
    @wire_property
    def period_s(self) -> int:
        """Seconds over which each point is the mean or the sum."""
        return self.window.period

    @property
    @wire_property
    def metrics(self) -> list[TimeSeries]:
        """The metrics that have values."""
        return list(self.courses.values())

    def with_notes(self, *notes: str) -> MetricSet:
        """The same, with more notes first."""
        return replace(self, notes=(*notes, *self.notes))


@dataclass(frozen=True)
class RunMetricReport:
    """All that is measured of a run.

    Attributes:
        series: What its ranks print.
        resources: What the launcher measured.
    """

    run_id: str
    series: list[MetricSeries]
    resources: RunResources


# --------------------------------------------------------------------------------------------------
# Time ranges of metrics, in periods that CloudWatch supports.

MAX_SECONDS = 63 * 86400
"""Maximum seconds to look back."""

_MAX_POINTS = 60
_COARSE_AFTER_S = 15 * 86400
"""Seconds after which CloudWatch only keeps 5-minute points."""


def last_seconds(seconds: float) -> TimeRange:
    """The last seconds, in at most 60 periods that CloudWatch supports; aligned with CloudWatch's periods.

    Raises:
        InvalidInputError: CloudWatch does not keep such points for that long, or the range is too short for a point.
    """
    if not 60 <= seconds <= MAX_SECONDS:
        raise InvalidInputError(
            "the time must be between one minute and 63 days",
            hint="CloudWatch keeps points of five minutes for 63 days",
            detail={"field": "since"},
        )
    now = time.time()
    return _window(now - seconds, now, seconds)


def _window(begin: float, end: float, age: float) -> TimeRange:
    step = 300 if age > _COARSE_AFTER_S else 60
    period = max(math.ceil((end - begin) / _MAX_POINTS / step), 1) * step
    return TimeRange(begin // period * period, end, period)
