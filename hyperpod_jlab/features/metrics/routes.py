"""Requests about metrics of HyperPod clusters, of their nodes and of runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.features.metrics.models import LONGEST, Measured
from hyperpod_jlab.features.metrics.service import MetricQuery
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class MetricPoint(TypedDict):
    """The value of a period, and when that began."""

    time: str
    value: float


class HyperpodMetric(TypedDict):
    """The course of a metric. Periods without a value have no point."""

    name: str
    unit: Literal["percent", "celsius", "bytes/s", "packets/s", "count"]
    meaning: str
    last: float
    mean: float
    lowest: float
    highest: float
    points: list[MetricPoint]


class HyperpodMetrics(TypedDict):
    """What was measured on a HyperPod cluster (`node` is null), on one of its nodes, or on a run's nodes. `missing` names what could be there and is not, `notes` say why."""

    cluster: str
    node: str | None
    source: Literal["CloudWatch", "Prometheus"]
    begin: str
    end: str
    period_s: int
    metrics: list[HyperpodMetric]
    missing: list[str]
    notes: list[str]


class HyperpodNodeMetrics(TypedDict):
    """The most important metrics of each node."""

    nodes: list[HyperpodMetrics]


class RunMetrics(TypedDict):
    """What was measured on a run's nodes while they were its own: the mean over them, and each that something is known of."""

    run_id: str
    whole: HyperpodMetrics
    nodes: list[HyperpodMetrics]


class MetricsQuery(RequestModel):
    """Which time, and which node."""

    seconds: Annotated[int, Field(ge=60, le=LONGEST)] = 3600
    """How long to look back."""
    node: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """Only this node: its instance id or its name in Kubernetes."""


class NodeMetricsQuery(RequestModel):
    """Which time, and how many nodes."""

    seconds: Annotated[int, Field(ge=60, le=LONGEST)] = 3600
    """How long to look back."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """At most so many nodes."""


class RunMetricsQuery(RequestModel):
    """Which attempt."""

    attempt: Annotated[int | None, Field(ge=1)] = None
    """Only while this attempt ran; default: all."""


async def show_metrics(call: Call, cluster: str, query: MetricsQuery) -> HyperpodMetrics:
    """The metrics of a HyperPod cluster, by its name or ARN, or of one of its nodes; at most a minute old."""
    looks = await call.process.metrics(region_of(cluster))
    (found,) = await looks.get(MetricQuery(cluster, query.seconds, node=query.node))
    return _answer(found)


async def list_node_metrics(
    call: Call, cluster: str, query: NodeMetricsQuery
) -> HyperpodNodeMetrics:
    """The most important metrics of each node of a HyperPod cluster on EKS; at most a minute old."""
    looks = await call.process.metrics(region_of(cluster))
    found = await looks.get(MetricQuery(cluster, query.seconds, nodes=query.limit))
    return {"nodes": [_answer(one) for one in found]}


async def show_run_metrics(call: Call, run_id: str, query: RunMetricsQuery) -> RunMetrics:
    """The metrics of a run on a HyperPod cluster, over the time in which it ran; at most a minute old."""
    looks = await call.process.metrics()
    whole, *nodes = await looks.get(MetricQuery(run=run_id, attempt=query.attempt))
    return {"run_id": run_id, "whole": _answer(whole), "nodes": [_answer(one) for one in nodes]}


def _answer(found: Measured) -> HyperpodMetrics:
    plain: dict[str, Any] = found.to_dict()
    return cast("HyperpodMetrics", plain)
