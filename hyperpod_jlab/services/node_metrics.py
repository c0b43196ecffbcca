"""Metrics of HyperPod clusters and of their nodes: GPUs, EFA, health.

They come from the workspace of Amazon Managed Service for Prometheus where the cluster has one that can be read and has values, else from CloudWatch.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from hyperpod_jlab.aws.clusters import list_instances
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
from hyperpod_jlab.aws.prometheus import Workspace, workspace_at, workspace_of_addon
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.config import LocalCluster, Settings
from hyperpod_jlab.model.errors import (
    DeniedError,
    HyperpodError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.model.node_metrics import METRICS, Course, Measured, Source, Window
from hyperpod_jlab.services.hyperpod_clusters import configured_as
from hyperpod_jlab.services.hyperpod_instances import find_cluster, find_instance
from hyperpod_jlab.services.metric_notes import eks_of, notes_on
from hyperpod_jlab.services.metric_windows import last
from hyperpod_jlab.services.prometheus_metrics import PrometheusMetrics, node_name

BY_NODE = ("gpu-utilization", "gpu-memory", "efa-received", "efa-sent", "cpu")
"""The metrics of each node in a table of nodes."""

_KNOWN_FOR = 300.0
"""Seconds for which it is remembered which workspace a cluster has, or why that is not known."""

_Measuring = Callable[[PrometheusMetrics], Awaitable[list[Measured]]]
_Otherwise = Callable[[], Awaitable[list[Measured]]]


class NodeMetrics:
    """Metrics in one region.

    Args:
        aws: AWS in that region.
        settings: The configuration, which may name clusters' workspaces.
    """

    def __init__(self, aws: Aws, settings: Settings | None = None) -> None:
        self.aws = aws
        self._settings = settings or Settings()
        self._workspaces: dict[str, tuple[float, Workspace | HyperpodError | None]] = {}

    async def of_cluster(self, cluster: str, seconds: float) -> Measured:
        """Metrics of a whole cluster over the last seconds.

        Raises:
            InvalidInputError: These are too many seconds, or what the configuration names is no workspace.
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[Measured]:
            named = await self._named(found)
            courses = await prometheus.of_cluster(list(named), window)
            return [measured(found, None, window, courses, "Prometheus")]

        async def otherwise() -> list[Measured]:
            eks = eks_of(found)
            if eks is not None:
                asked = ask_for(ON_EKS, INSIGHTS, {"ClusterName": eks})
            else:
                asked = ask_for(ON_SLURM, SLURM, {"ClusterId": found.arn.rpartition("/")[2]})
            return [measured(found, None, window, await read_courses(self.aws, asked, window))]

        (one,) = await self.first_of(found, ask, otherwise)
        return one

    async def of_node(self, cluster: str, node: str, seconds: float) -> Measured:
        """Metrics of one node of a cluster over the last seconds.

        Args:
            cluster: Name or ARN.
            node: The node (see `find_instance`).
            seconds: How long to look back.

        Raises:
            InvalidInputError: These are too many seconds, or what the configuration names is no workspace.
            NotFoundError: There is no such cluster or node.
            UnsupportedError: Only CloudWatch could be asked, which has none of single nodes.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[Measured]:
            instance = await find_instance(self.aws, cluster, node)
            name = node_name(found, instance)
            courses = (await prometheus.of_nodes([name], window))[name] if name else []
            return [measured(found, instance.name, window, courses, "Prometheus")]

        async def otherwise() -> list[Measured]:
            return [await self._node_of_eks(found, node, window)]

        (one,) = await self.first_of(found, ask, otherwise)
        return one

    async def of_nodes(
        self, cluster: str, seconds: float, limit: int | None = None
    ) -> list[Measured]:
        """The most important metrics (`BY_NODE`) of each node of a cluster, by instance id; nodes of which there are none are left out.

        Raises:
            InvalidInputError: These are too many seconds, or what the configuration names is no workspace.
            NotFoundError: There is no such cluster.
            UnsupportedError: Only CloudWatch could be asked, which has none of single nodes.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[Measured]:
            named = sorted((await self._named(found)).items(), key=lambda pair: pair[1].name)
            names = {name: instance.name for name, instance in named[:limit]}
            courses = await prometheus.of_nodes(list(names), window, BY_NODE)
            rows = (
                measured(found, names[name], window, own, "Prometheus", notes=False)
                for name, own in courses.items()
            )
            return [row for row in rows if row.courses]

        async def otherwise() -> list[Measured]:
            return await self.nodes_of_eks(found, window, BY_NODE, limit=limit)

        return await self.first_of(found, ask, otherwise)

    async def nodes_of_eks(
        self,
        cluster: HyperpodCluster,
        window: Window,
        metrics: Sequence[str],
        *,
        only: Collection[str] | None = None,
        limit: int | None = None,
    ) -> list[Measured]:
        """What CloudWatch has of each node of a cluster on EKS, by instance id; nodes that it had none of are left out.

        Args:
            cluster: The cluster.
            window: When.
            metrics: Which of `ON_NODES`.
            only: Only instances with these ids.
            limit: At most so many nodes.

        Raises:
            UnsupportedError: It is not on EKS.
            HyperpodError: See `aws.errors`.
        """
        known = sorted((await nodes_with_metrics(self.aws, _nodes_of(cluster))).items())
        chosen = [pair for pair in known if only is None or pair[0] in only][:limit]
        sources = {name: ON_NODES[name] for name in metrics}
        asked = [one for _, on in chosen for one in ask_for(sources, INSIGHTS, on)]
        courses = await read_courses(self.aws, asked, window)
        count = len(sources)
        rows = [
            measured(cluster, name, window, courses[at * count : (at + 1) * count], notes=False)
            for at, (name, _) in enumerate(chosen)
        ]
        return [row for row in rows if row.courses]

    async def first_of(
        self, cluster: HyperpodCluster, ask: _Measuring, otherwise: _Otherwise
    ) -> list[Measured]:
        """What the cluster's workspace tells, or what CloudWatch does where there is none, it cannot be read or has nothing; that is said then.

        Args:
            cluster: The cluster.
            ask: Asks the workspace.
            otherwise: Asks CloudWatch.

        Raises:
            InvalidInputError: What the configuration or the add-on names is no workspace.
            HyperpodError: Of CloudWatch; of the workspace where CloudWatch can have no such metrics or knows none of the nodes.
        """
        failed: HyperpodError | None = None
        why: str | None = None
        try:
            workspace = await self._workspace(cluster)
            if workspace is not None:
                told = await ask(PrometheusMetrics(self.aws, workspace, cluster))
                if any(one.courses for one in told):
                    return told
                why = f"the workspace {workspace.url} has no metrics of this in this time"
        except (DeniedError, UnreachableError, UnsupportedError) as error:
            failed, why = error, f"Amazon Managed Service for Prometheus: {error.message}"
        try:
            found = await otherwise()
        except UnsupportedError as error:
            if failed is not None:
                raise failed from None
            if why is not None:
                raise UnsupportedError(
                    f"{why}, and {error.message}", hint=error.hint, detail=error.detail
                ) from None
            raise
        if failed is not None and not found:
            raise failed
        return found if why is None else [one.noting(why) for one in found]

    async def _node_of_eks(self, cluster: HyperpodCluster, node: str, window: Window) -> Measured:
        eks = _nodes_of(cluster)
        instance = (await find_instance(self.aws, cluster.name, node)).name
        known = await metrics_of_node(self.aws, eks, instance)
        asked = [
            Asked(METRICS[name], source, INSIGHTS, known[source.name])
            for name, source in ON_NODES.items()
            if source.name in known
        ]
        courses = await read_courses(self.aws, asked, window)
        there = {course.metric.name for course in courses}
        absent = [Course(METRICS[name], ()) for name in ON_NODES if name not in there]
        return measured(cluster, instance, window, [*courses, *absent])

    async def _named(self, cluster: HyperpodCluster) -> dict[str, Instance]:
        """The instances of a cluster by what the workspace calls them."""
        every = [one async for page in list_instances(self.aws, cluster.name) for one in page]
        named = ((node_name(cluster, one), one) for one in every)
        return {name: one for name, one in named if name is not None}

    async def _workspace(self, cluster: HyperpodCluster) -> Workspace | None:
        """The workspace that has a cluster's metrics: the one of the configuration, else its add-on's. Kept for a while, also when it is not known."""
        at, known = self._workspaces.get(cluster.arn, (0.0, None))
        if time.monotonic() - at > _KNOWN_FOR or at == 0.0:
            try:
                known = await self._find_workspace(cluster)
            except (DeniedError, UnreachableError, UnsupportedError) as error:
                known = error
            self._workspaces[cluster.arn] = time.monotonic(), known
        if isinstance(known, HyperpodError):
            raise known
        return known

    async def _find_workspace(self, cluster: HyperpodCluster) -> Workspace | None:
        for name in configured_as(self._settings, cluster):
            config = self._settings.clusters[name]
            if not isinstance(config, LocalCluster) and config.prometheus is not None:
                return workspace_at(config.prometheus, cluster.region)
        eks = eks_of(cluster)
        return None if eks is None else await workspace_of_addon(self.aws, eks)


def _nodes_of(cluster: HyperpodCluster) -> str:
    """Name of the EKS cluster behind a cluster, which has metrics of single nodes in CloudWatch.

    Raises:
        UnsupportedError: It is not on EKS.
    """
    eks = eks_of(cluster)
    if eks is None:
        raise UnsupportedError(
            f"CloudWatch has no metrics of single nodes of {cluster.name}, which is not on EKS",
            hint="name its workspace of Amazon Managed Service for Prometheus in the configuration (prometheus), "
            "or leave out the node for the mean over all of them",
            detail={"cluster": cluster.name},
        )
    return eks


def measured(
    cluster: HyperpodCluster,
    node: str | None,
    window: Window,
    courses: Sequence[Course],
    source: Source = "CloudWatch",
    *,
    notes: bool = True,
) -> Measured:
    """What was measured, in the order of `METRICS`.

    Args:
        cluster: The cluster.
        node: Whose; None: the cluster's.
        window: When.
        courses: All that could be there; those without a value are missing.
        source: Where from.
        notes: Whether to say what is missing.
    """
    by_name = {course.metric.name: course for course in courses if course.points}
    shown = {name: by_name[name] for name in METRICS if name in by_name}
    missing = tuple(course.metric.name for course in courses if not course.points)
    told = notes_on(cluster, source, shown.keys(), missing) if notes else ()
    return Measured(cluster.name, node, window, source, shown, missing, told)
