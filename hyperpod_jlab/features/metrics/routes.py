"""Requests about metrics of HyperPod clusters and of their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hyperpod_jlab.features.metrics.models import MAX_SECONDS, MetricSet
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


async def show_metrics(call: Call, cluster: str, query: MetricsQuery) -> MetricSet:
    """Get the metrics of a HyperPod cluster or of one of its nodes; at most a minute old."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve_hyperpod(cluster)
    cache = metric_cache(hyperpod, resolved.region)
    (metric_set,) = await cache.get(MetricRequest(resolved.aws_name, query.seconds, node=query.node))
    return metric_set


async def list_node_metrics(call: Call, cluster: str, query: NodeMetricsQuery) -> HyperpodNodeMetrics:
    """List the most important metrics of each node of a HyperPod cluster on EKS; at most a minute old."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve_hyperpod(cluster)
    cache = metric_cache(hyperpod, resolved.region)
    metric_sets = await cache.get(MetricRequest(resolved.aws_name, query.seconds, nodes=query.limit))
    return HyperpodNodeMetrics(tuple(metric_sets))
