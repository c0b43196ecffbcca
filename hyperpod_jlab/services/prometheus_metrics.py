"""Metrics of HyperPod clusters, of their nodes and of runs, out of a workspace of Amazon Managed Service for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from hyperpod_jlab.aws.prometheus import Series, Workspace, query_range
from hyperpod_jlab.aws.prometheus_metrics import (
    OF_EKS,
    OF_GPUS,
    OF_SLURM,
    PER_NODE_ON_EKS,
    PER_NODE_WITH_SLURM,
    Expression,
    is_name,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.model.node_metrics import METRICS, Course, Window

_AT_ONCE = 4
"""Queries that are under way at the same time."""


def node_name(cluster: HyperpodCluster, instance: Instance) -> str | None:
    """What an instance is called in the workspace: by Kubernetes or by Slurm; None where it has no name yet."""
    if cluster.eks_arn is not None:
        return f"hyperpod-{instance.name}"
    return instance.host.partition(".")[0] if instance.host else None


class PrometheusMetrics:
    """Metrics of one cluster.

    Args:
        aws: AWS.
        workspace: The workspace that has them.
        cluster: The cluster: a workspace may have several, so only series of its own nodes count.
    """

    def __init__(self, aws: Aws, workspace: Workspace, cluster: HyperpodCluster) -> None:
        self._aws = aws
        self._workspace = workspace
        on_eks = cluster.eks_arn is not None
        self._whole = OF_EKS if on_eks else OF_SLURM
        self._each = PER_NODE_ON_EKS if on_eks else PER_NODE_WITH_SLURM

    async def of_cluster(self, names: Sequence[str], window: Window) -> list[Course]:
        """The course of each metric, also of those without a value.

        Args:
            names: The names of the cluster's nodes (see `node_name`).
            window: When.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        known = list(filter(is_name, names))
        if not known:
            return [Course(METRICS[name], ()) for name in self._whole]
        asked = {name: one.of_all(known, window.period) for name, one in self._whole.items()}
        found = await self._ask(asked, window)
        return [
            Course(METRICS[name], series[0].points if series else ())
            for name, series in found.items()
        ]

    async def of_nodes(
        self,
        names: Sequence[str],
        window: Window,
        metrics: Collection[str] | None = None,
        pods: str | None = None,
    ) -> dict[str, list[Course]]:
        """The course of metrics on each of some nodes, by the node's name, also of those without a value.

        Args:
            names: The nodes' names (see `node_name`).
            window: When.
            metrics: Which; default: all of nodes.
            pods: Metrics of GPUs are of those only that pods have whose names begin so.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        wanted = {
            name: one for name, one in self._each.items() if metrics is None or name in metrics
        }
        known = list(filter(is_name, names))
        asked = {
            name: one.by_node(known, window.period, pods if name in OF_GPUS else None)
            for name, one in wanted.items()
            if known
        }
        found = await self._ask(asked, window)
        return {node: list(_courses_of(node, wanted, found)) for node in names}

    async def _ask(self, asked: Mapping[str, str], window: Window) -> dict[str, list[Series]]:
        room = asyncio.Semaphore(_AT_ONCE)

        async def ask(expression: str) -> list[Series]:
            async with room:
                return await query_range(self._aws, self._workspace, expression, window)

        answers = await asyncio.gather(*map(ask, asked.values()))
        return dict(zip(asked, answers, strict=True))


def _courses_of(
    node: str, wanted: Mapping[str, Expression], found: Mapping[str, Iterable[Series]]
) -> Iterable[Course]:
    for name, expression in wanted.items():
        own = (one for one in found.get(name, ()) if one.labels.get(expression.label) == node)
        first = next(own, None)
        yield Course(METRICS[name], first.points if first else ())
