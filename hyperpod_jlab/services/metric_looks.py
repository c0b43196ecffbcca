"""Metrics for many who look: CloudWatch, which bills by the metric, is asked once a minute for each thing."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from hyperpod_jlab.model.node_metrics import Measured
from hyperpod_jlab.services.node_metrics import NodeMetrics

FRESH = 60.0
"""Seconds for which an answer is good: CloudWatch has no newer value before."""

_MOST = 64
"""Answers that are kept."""


@dataclass(frozen=True)
class MetricQuery:
    """What is looked at.

    Attributes:
        cluster: Name or ARN of a HyperPod cluster.
        seconds: How long to look back.
        node: Only this node.
        nodes: Instead of the cluster, each of so many of its nodes.
    """

    cluster: str
    seconds: int
    node: str | None = None
    nodes: int | None = None


class MetricLooks:
    """Answers by what was asked. One that failed is not kept, and whoever asks meanwhile gets the same.

    Args:
        metrics: Who asks CloudWatch.
    """

    def __init__(self, metrics: NodeMetrics) -> None:
        self._metrics = metrics
        self._held: OrderedDict[MetricQuery, asyncio.Future[list[Measured]]] = OrderedDict()
        self._begun: dict[MetricQuery, float] = {}

    async def get(self, query: MetricQuery) -> list[Measured]:
        """What was measured; for a cluster or a node a list of one.

        Raises:
            HyperpodError: See `NodeMetrics`.
        """
        held = self._held.get(query)
        old = time.monotonic() - self._begun.get(query, 0.0) > FRESH
        if held is None or (held.done() and old):
            held = asyncio.ensure_future(self._look(query))
            self._held[query], self._begun[query] = held, time.monotonic()
            held.add_done_callback(lambda done: self._drop_failed(query, done))
        self._held.move_to_end(query)
        while len(self._held) > _MOST:
            dropped, _ = self._held.popitem(last=False)
            del self._begun[dropped]
        # One who goes away takes the look from nobody else.
        return await asyncio.shield(held)

    async def _look(self, query: MetricQuery) -> list[Measured]:
        if query.nodes is not None:
            return await self._metrics.of_nodes(query.cluster, query.seconds, query.nodes)
        if query.node is not None:
            return [await self._metrics.of_node(query.cluster, query.node, query.seconds)]
        return [await self._metrics.of_cluster(query.cluster, query.seconds)]

    def _drop_failed(self, query: MetricQuery, done: asyncio.Future[list[Measured]]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed and self._held.get(query) is done:
            del self._held[query], self._begun[query]
