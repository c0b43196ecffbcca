"""Metrics for many who look: AWS, which bills by the metric and by the query, is asked once a minute for each thing."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from hyperpod_jlab.model.node_metrics import Measured
from hyperpod_jlab.services.node_metrics import NodeMetrics
from hyperpod_jlab.services.run_metrics import RunMetrics

FRESH = 60.0
"""Seconds for which an answer is good: CloudWatch has no newer value before."""

_MOST = 64
"""Answers that are kept."""


@dataclass(frozen=True)
class MetricQuery:
    """What is looked at.

    Attributes:
        cluster: Name or ARN of a HyperPod cluster; empty for a run.
        seconds: How long to look back; nothing for a run.
        node: Only this node.
        nodes: Instead of the cluster, each of so many of its nodes.
        run: Instead of a cluster, this run.
        attempt: Only this attempt of the run.
    """

    cluster: str = ""
    seconds: int = 0
    node: str | None = None
    nodes: int | None = None
    run: str | None = None
    attempt: int | None = None


class MetricLooks:
    """Answers by what was asked. One that failed is not kept, and whoever asks meanwhile gets the same.

    Args:
        metrics: Who asks AWS of clusters and nodes.
        runs: Who asks it of runs.
    """

    def __init__(self, metrics: NodeMetrics, runs: RunMetrics) -> None:
        self._metrics = metrics
        self._runs = runs
        self._held: OrderedDict[MetricQuery, asyncio.Future[list[Measured]]] = OrderedDict()
        self._begun: dict[MetricQuery, float] = {}

    async def get(self, query: MetricQuery) -> list[Measured]:
        """What was measured; for a cluster or a node a list of one, for a run its mean and then each of its nodes.

        Raises:
            HyperpodError: See `NodeMetrics` and `RunMetrics`.
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
        if query.run is not None:
            found = await self._runs.of_run(query.run, query.attempt)
            return [found.whole, *found.nodes]
        if query.nodes is not None:
            return await self._metrics.of_nodes(query.cluster, query.seconds, query.nodes)
        if query.node is not None:
            return [await self._metrics.of_node(query.cluster, query.node, query.seconds)]
        return [await self._metrics.of_cluster(query.cluster, query.seconds)]

    def _drop_failed(self, query: MetricQuery, done: asyncio.Future[list[Measured]]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed and self._held.get(query) is done:
            del self._held[query], self._begun[query]
