"""Metrics of HyperPod clusters and of their nodes: GPUs, EFA, health."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence

from hyperpod_jlab.aws.metrics import (
    INSIGHTS,
    ON_EKS,
    ON_NODES,
    ON_SLURM,
    SLURM,
    Asked,
    ask_for,
    metrics_of_node,
    nodes_with_metrics,
    read_courses,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InvalidInputError, UnsupportedError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.node_metrics import METRICS, Course, Measured, Window
from hyperpod_jlab.services.hyperpod_instances import find_cluster, find_instance

BY_NODE = ("gpu-utilization", "gpu-memory", "efa-received", "efa-sent", "cpu")
"""The metrics of each node in a table of nodes."""

LONGEST = 63 * 86400
"""Seconds that can be looked back."""

_POINTS = 60
_COARSE_AFTER = 15 * 86400
"""Seconds after which CloudWatch keeps points of five minutes only."""

_GPUS = frozenset({"gpu-utilization", "gpu-memory", "gpu-temperature"})
_HEALTH = frozenset({"healthy", "deep-health-check", "to-reboot", "to-replace"})
_EFA = frozenset({"efa-received", "efa-sent", "efa-dropped"})


class NodeMetrics:
    """Metrics in one region.

    Args:
        aws: AWS in that region.
    """

    def __init__(self, aws: Aws) -> None:
        self.aws = aws

    async def of_cluster(self, cluster: str, seconds: float) -> Measured:
        """Metrics of a whole cluster over the last seconds.

        Raises:
            InvalidInputError: These are too many seconds.
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)
        eks = _eks(found)
        if eks is not None:
            asked = ask_for(ON_EKS, INSIGHTS, {"ClusterName": eks})
        else:
            asked = ask_for(ON_SLURM, SLURM, {"ClusterId": found.arn.rpartition("/")[2]})
        courses = await read_courses(self.aws, asked, window)
        return _measured(found, None, window, courses)

    async def of_node(self, cluster: str, node: str, seconds: float) -> Measured:
        """Metrics of one node of a cluster on EKS over the last seconds.

        Args:
            cluster: Name or ARN.
            node: The node (see `find_instance`).
            seconds: How long to look back.

        Raises:
            InvalidInputError: These are too many seconds.
            NotFoundError: There is no such cluster or node.
            UnsupportedError: CloudWatch has none of single nodes.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)
        eks = _nodes_of(found)
        instance = (await find_instance(self.aws, cluster, node)).name
        known = await metrics_of_node(self.aws, eks, instance)
        asked = [
            Asked(METRICS[name], source, INSIGHTS, known[source.name])
            for name, source in ON_NODES.items()
            if source.name in known
        ]
        courses = await read_courses(self.aws, asked, window)
        there = {course.metric.name for course in courses}
        absent = [Course(METRICS[name], ()) for name in ON_NODES if name not in there]
        return _measured(found, instance, window, [*courses, *absent])

    async def of_nodes(
        self, cluster: str, seconds: float, limit: int | None = None
    ) -> list[Measured]:
        """The most important metrics (`BY_NODE`) of each node of a cluster on EKS, by instance id; nodes that CloudWatch had none of are left out.

        Raises:
            InvalidInputError: These are too many seconds.
            NotFoundError: There is no such cluster.
            UnsupportedError: CloudWatch has none of single nodes.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)
        known = sorted((await nodes_with_metrics(self.aws, _nodes_of(found))).items())
        sources = {name: ON_NODES[name] for name in BY_NODE}
        chosen = known[:limit]
        asked = [one for _, on in chosen for one in ask_for(sources, INSIGHTS, on)]
        courses = await read_courses(self.aws, asked, window)
        count = len(BY_NODE)
        rows = [
            _measured(found, name, window, courses[at * count : (at + 1) * count], notes=False)
            for at, (name, _) in enumerate(chosen)
        ]
        return [row for row in rows if row.courses]


def last(seconds: float) -> Window:
    """The last seconds, in at most 60 periods that CloudWatch can answer; the first begins where CloudWatch's own do.

    Raises:
        InvalidInputError: It does not keep such points so long, or there is none in so short a time.
    """
    if not 60 <= seconds <= LONGEST:
        raise InvalidInputError(
            "metrics can be shown of one minute to 63 days",
            hint="CloudWatch keeps points of five minutes for 63 days",
            detail={"field": "since"},
        )
    step = 300 if seconds > _COARSE_AFTER else 60
    period = math.ceil(seconds / _POINTS / step) * step
    now = time.time()
    return Window((now - seconds) // period * period, now, period)


def _eks(cluster: HyperpodCluster) -> str | None:
    """Name of the EKS cluster behind a cluster."""
    return cluster.eks_arn.rpartition("/")[2] if cluster.eks_arn else None


def _nodes_of(cluster: HyperpodCluster) -> str:
    """Name of the EKS cluster behind a cluster, which has metrics of single nodes.

    Raises:
        UnsupportedError: It is not on EKS.
    """
    eks = _eks(cluster)
    if eks is None:
        raise UnsupportedError(
            f"CloudWatch has no metrics of single nodes of {cluster.name}, which is not on EKS",
            hint="leave out the node for the mean over all of them; while a run runs, hpj show tells the use of its GPUs",
            detail={"cluster": cluster.name},
        )
    return eks


def _measured(
    cluster: HyperpodCluster,
    node: str | None,
    window: Window,
    courses: Sequence[Course],
    *,
    notes: bool = True,
) -> Measured:
    by_name = {course.metric.name: course for course in courses if course.points}
    shown = {name: by_name[name] for name in METRICS if name in by_name}
    missing = tuple(course.metric.name for course in courses if not course.points)
    told = _notes(cluster, shown.keys(), missing) if notes else ()
    return Measured(cluster.name, node, window, shown, missing, told)


def _notes(
    cluster: HyperpodCluster, shown: Collection[str], missing: Sequence[str]
) -> tuple[str, ...]:
    """What is to be said of metrics that are not there."""
    eks, absent = _eks(cluster), set(missing)
    if eks is None:
        return () if shown else (_no_metrics_of_slurm(cluster),)
    if not shown:
        return (_no_metrics_of_eks(eks, cluster.region),)
    notes = []
    if absent >= _GPUS:
        notes.append("no metrics of GPUs: the nodes have none, or the add-on is too old for them")
    if absent >= _EFA:
        notes.append("no metrics of EFA: the nodes have none, or the add-on is too old for them")
    if absent >= _HEALTH:
        notes.append("no metrics of health: the add-on is too old for HyperPod's; update it")
    return tuple(notes)


def _no_metrics_of_eks(eks: str, region: str) -> str:
    return (
        f"CloudWatch has no metrics of the EKS cluster {eks} in this time; they come from the add-on amazon-cloudwatch-observability: "
        f"aws eks create-addon --cluster-name {eks} --addon-name amazon-cloudwatch-observability --region {region} "
        "(the nodes' role needs the policy CloudWatchAgentServerPolicy). HyperPod's own observability add-on writes to "
        "Amazon Managed Service for Prometheus, which is not read here"
    )


def _no_metrics_of_slurm(cluster: HyperpodCluster) -> str:
    return (
        f"CloudWatch has no metrics of {cluster.name} in its namespace {SLURM} in this time. The observability of HyperPod's life cycle "
        "scripts (exporters for GPUs, EFA and Slurm) writes to Amazon Managed Service for Prometheus, which is not read here; "
        "its Grafana shows them"
    )
