"""What CloudWatch has in the pretended account: lines of logs, and measurements. Plain data, to be added to by tests and demos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

Dimensions = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Metric:
    """A metric of one region; its dimensions are in the order of their names."""

    region: str
    namespace: str
    name: str
    dimensions: Dimensions


@dataclass
class Telemetry:
    """Logs and measurements.

    Attributes:
        logs: Lines by region and log group, then by stream: time in milliseconds and text, in the order of time.
        measured: Measurements by metric: when and how much.
        looked_at: The most lines that one `GetLogEvents` looks at: with few, pages come half full and empty, as AWS allows itself.
        points: The most points that one `GetMetricData` gives.
    """

    logs: dict[tuple[str, str], dict[str, list[tuple[int, str]]]] = field(default_factory=dict)
    measured: dict[Metric, list[tuple[datetime, float]]] = field(default_factory=dict)
    looked_at: int = 10_000
    points: int = 100_800

    def write(self, region: str, group: str, stream: str, lines: Iterable[tuple[int, str]]) -> None:
        """Add lines to a log, which is made if need be; times are in milliseconds."""
        known = self.logs.setdefault((region, group), {}).setdefault(stream, [])
        known.extend(lines)
        known.sort(key=lambda line: line[0])

    def measure(
        self,
        region: str,
        namespace: str,
        name: str,
        dimensions: Mapping[str, str],
        values: Iterable[tuple[datetime, float]],
    ) -> None:
        """Add measurements to a metric, which is made if need be."""
        metric = Metric(region, namespace, name, tuple(sorted(dimensions.items())))
        self.measured.setdefault(metric, []).extend(values)


def cluster_log_group(name: str, arn: str) -> str:
    """The log group in which a HyperPod cluster's nodes write."""
    return f"/aws/sagemaker/Clusters/{name}/{arn.rpartition('/')[2]}"


def milliseconds(moment: datetime) -> int:
    """A time as CloudWatch Logs has it."""
    return int(moment.astimezone(UTC).timestamp() * 1000)
