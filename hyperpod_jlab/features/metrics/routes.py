"""Requests about metrics of HyperPod clusters, of their nodes and of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hyperpod_jlab.features.metrics.models import MAX_SECONDS, MetricSet, RunMetricSets
from hyperpod_jlab.features.metrics.service import MetricRequest, metric_cache
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


@dataclass(frozen=True)
class HyperpodNodeMetrics:
    """The most important metrics of each node."""

    nodes: tuple[MetricSet, ...]


class MetricsQuery(RequestModel):
    """Time range and node."""

    seconds: Annotated[int, Field(ge=60, le=MAX_SECONDS)] = 3600
    """How long to look back."""
    node: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """Only this node: its instance id or its name in Kubernetes."""


class NodeMetricsQuery(RequestModel):
    """Time range and number of nodes."""

    seconds: Annotated[int, Field(ge=60, le=MAX_SECONDS)] = 3600
    """How long to look back."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """Maximum number of nodes."""


class RunMetricsQuery(RequestModel):
    """Which attempt."""

    attempt: Annotated[int | None, Field(ge=1)] = None
    """Only while this attempt ran; default: all."""


async def show_metrics(call: Call, cluster: str, query: MetricsQuery) -> MetricSet:
    """Get the metrics of a HyperPod cluster or of one of its nodes; at most a minute old."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve_hyperpod(cluster)
    cache = metric_cache(hyperpod, resolved.region)
    (metric_set,) = await cache.get(
        MetricRequest(resolved.aws_name, query.seconds, node=query.node)
    )
    return metric_set


async def list_node_metrics(
    call: Call, cluster: str, query: NodeMetricsQuery
) -> HyperpodNodeMetrics:
    """List the most important metrics of each node of a HyperPod cluster on EKS; at most a minute old."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve_hyperpod(cluster)
    cache = metric_cache(hyperpod, resolved.region)
    metric_sets = await cache.get(
        MetricRequest(resolved.aws_name, query.seconds, nodes=query.limit)
    )
    return HyperpodNodeMetrics(tuple(metric_sets))


async def show_run_metrics(call: Call, run_id: str, query: RunMetricsQuery) -> RunMetricSets:
    """Get the metrics of a run on a HyperPod cluster, for the time in which it ran; at most a minute old."""
    cache = metric_cache(await call.hyperpod())
    overall, *nodes = await cache.get(MetricRequest(run=run_id, attempt=query.attempt))
    return RunMetricSets(run_id, overall, tuple(nodes))
