"""Metrics of HyperPod clusters in CloudWatch.

Names are from AWS' documentation: on EKS those of Container Insights with enhanced observability, by the EKS cluster's name and per
node; with Slurm those in ``/aws/sagemaker/Clusters`` by the cluster's id, none of them per node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.features.metrics.models import METRICS, Metric, TimeRange, TimeSeries

Dimensions = tuple[tuple[str, str], ...]

MAX_QUERIES = 500
"""Maximum metrics per request (AWS' limit)."""

_CONCURRENCY = 4
"""Concurrent requests."""

_NODE_NAME = "hyperpod-"
"""HyperPod's prefix of the instance id in a Kubernetes node name."""

_PROBE_METRIC = "node_cpu_utilization"
"""A metric that each node has once; others repeat for each of its devices."""


@dataclass(frozen=True)
class Source:
    """The source of a metric: CloudWatch's name, the statistic over a period, and a factor."""

    name: str
    statistic: str = "Average"
    factor: float = 1.0


INSIGHTS = "ContainerInsights"
"""Namespace of the metrics on EKS."""

SLURM = "/aws/sagemaker/Clusters"
"""Namespace of the metrics with Slurm."""

_HEALTH = "hyperpod_node_health_status_"

NODE_METRICS = {
    "gpu-utilization": Source("node_gpu_utilization"),
    "gpu-memory": Source("node_gpu_memory_utilization"),
    "gpu-temperature": Source("node_gpu_temperature"),
    "efa-received": Source("node_efa_rx_bytes"),
    "efa-sent": Source("node_efa_tx_bytes"),
    "efa-dropped": Source("node_efa_rx_dropped"),
    "cpu": Source("node_cpu_utilization"),
    "memory": Source("node_memory_utilization"),
    # 1 for each node in this state, else 0: the mean is the share.
    "healthy": Source(f"{_HEALTH}schedulable", factor=100),
    "deep-health-check": Source(f"{_HEALTH}unschedulable", factor=100),
    "to-reboot": Source(f"{_HEALTH}unschedulable_pending_reboot", factor=100),
    "to-replace": Source(f"{_HEALTH}unschedulable_pending_replacement", factor=100),
}
"""Metrics of each node of an EKS cluster, and of all nodes together."""

EKS_METRICS = {
    **NODE_METRICS,
    "nodes": Source("cluster_node_count"),
    "nodes-failed": Source("cluster_failed_node_count", "Maximum"),
}
"""Metrics of an EKS cluster."""

SLURM_METRICS = {
    "gpu-utilization": Source("node_gpu_utilization"),
    "gpu-memory": Source("node_gpu_memory_utilization"),
    "cpu": Source("node_cpu_utilization"),
    "memory": Source("node_memory_utilization"),
    "nodes": Source("cluster_node_count"),
    "nodes-idle": Source("cluster_idle_node_count"),
    "nodes-failed": Source("cluster_failed_node_count", "Maximum"),
    "gpus-idle": Source("cluster_idle_gpu_count"),
    "jobs-running": Source("cluster_running_task_count"),
    "jobs-waiting": Source("cluster_pending_task_count"),
}
"""Metrics of a cluster with Slurm."""


@dataclass(frozen=True)
class MetricQuery:
    """A metric with its source and dimensions."""

    metric: Metric
    source: Source
    namespace: str
    dimensions: Dimensions


def build_queries(sources: Mapping[str, Source], namespace: str, dimensions: Mapping[str, str]) -> list[MetricQuery]:
    """Metrics of one thing."""
    dimension_pairs = tuple(sorted(dimensions.items()))
    return [MetricQuery(METRICS[name], source, namespace, dimension_pairs) for name, source in sources.items()]


async def read_series(aws: Aws, queries: Sequence[MetricQuery], window: TimeRange) -> list[TimeSeries]:
    """The time series of each metric, in the requested order; without points if CloudWatch does not have it.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    semaphore = asyncio.Semaphore(_CONCURRENCY)

    async def read(batch: Sequence[MetricQuery]) -> list[TimeSeries]:
        async with semaphore:
            return await _read(aws, batch, window)

    parts = [queries[start : start + MAX_QUERIES] for start in range(0, len(queries), MAX_QUERIES)]
    return [course for part in await asyncio.gather(*map(read, parts)) for course in part]


async def nodes_with_metrics(aws: Aws, eks: str) -> dict[str, dict[str, str]]:
    """The nodes of an EKS cluster with metrics in CloudWatch in the last two weeks, with their dimensions, by instance id.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    nodes: dict[str, dict[str, str]] = {}
    filters = [{"Name": "ClusterName", "Value": eks}, {"Name": "InstanceId"}, {"Name": "NodeName"}]
    async for page in _metrics(aws, Namespace=INSIGHTS, MetricName=_PROBE_METRIC, Dimensions=filters):
        for metric in page:
            dimensions = {pair["Name"]: pair["Value"] for pair in metric["Dimensions"]}
            nodes[dimensions["InstanceId"].removeprefix(_NODE_NAME)] = dimensions
    return nodes


async def metrics_of_node(aws: Aws, eks: str, instance: str) -> dict[str, Dimensions]:
    """The dimensions of each CloudWatch metric of a node of an EKS cluster, by CloudWatch's name of the metric.

    Metrics of its health may have other dimensions than those of its devices: they come from another part of the add-on.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    names = {source.name for source in NODE_METRICS.values()}
    by_name: dict[str, Dimensions] = {}
    filters = [{"Name": "ClusterName", "Value": eks}, {"Name": "NodeName", "Value": f"{_NODE_NAME}{instance}"}]
    async for page in _metrics(aws, Namespace=INSIGHTS, Dimensions=filters):
        for metric in page:
            dimensions = tuple(sorted((pair["Name"], pair["Value"]) for pair in metric["Dimensions"]))
            if metric["MetricName"] in names and {name for name, _ in dimensions} == {
                *("ClusterName", "InstanceId", "NodeName")
            }:
                by_name[metric["MetricName"]] = dimensions
    return by_name


async def _metrics(aws: Aws, **parameters: Any) -> AsyncIterator[list[dict[str, Any]]]:
    token: dict[str, str] = {}
    while True:
        page = await aws.call("cloudwatch", "ListMetrics", **parameters, **token)
        yield page.get("Metrics", [])
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


async def _read(aws: Aws, queries: Sequence[MetricQuery], window: TimeRange) -> list[TimeSeries]:
    points: dict[str, dict[float, float]] = {_id(index): {} for index in range(len(queries))}
    token: dict[str, str] = {}
    while True:
        page = await aws.call(
            "cloudwatch",
            "GetMetricData",
            MetricDataQueries=[_query(index, query, window) for index, query in enumerate(queries)],
            StartTime=datetime.fromtimestamp(window.begin, UTC),
            EndTime=datetime.fromtimestamp(window.end, UTC),
            ScanBy="TimestampAscending",
            **token,
        )
        for result in page.get("MetricDataResults", []):
            times = (time.timestamp() for time in result["Timestamps"])
            points[result["Id"]].update(zip(times, result["Values"], strict=True))
        if not page.get("NextToken"):
            break
        token = {"NextToken": page["NextToken"]}
    return [
        TimeSeries(query.metric, tuple((t, v * query.source.factor) for t, v in sorted(points[_id(index)].items())))
        for index, query in enumerate(queries)
    ]


def _id(index: int) -> str:
    return f"m{index}"


def _query(index: int, query: MetricQuery, window: TimeRange) -> dict[str, Any]:
    return {
        "Id": _id(index),
        "MetricStat": {
            "Metric": {
                "Namespace": query.namespace,
                "MetricName": query.source.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in query.dimensions],
            },
            "Period": window.period,
            "Stat": query.source.statistic,
        },
    }
