"""Metrics of HyperPod clusters and of their nodes: GPUs, EFA, health.

The source is the cluster's workspace of Amazon Managed Service for Prometheus if it is readable and has values, else CloudWatch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from hyperpod_jlab.aws.clusters import list_instances
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import configured_as, find_cluster, find_instance
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, UnreachableError, UnsupportedError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.features.metrics.aws import (
    EKS_METRICS,
    INSIGHTS,
    NODE_METRICS,
    SLURM,
    SLURM_METRICS,
    build_queries,
    metrics_of_node,
    nodes_with_metrics,
    read_series,
)
from hyperpod_jlab.features.metrics.aws import MetricQuery as CloudWatchQuery
from hyperpod_jlab.features.metrics.models import METRICS, MetricSet, Source, TimeRange, TimeSeries, last_seconds
from hyperpod_jlab.features.metrics.prometheus import (
    ADDON,
    PrometheusMetrics,
    Workspace,
    node_name,
    workspace_at,
    workspace_of_addon,
)
from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# Notes on missing metrics.

_GPUS = frozenset({"gpu-utilization", "gpu-memory", "gpu-temperature"})
_HEALTH = frozenset({"healthy", "deep-health-check", "to-reboot", "to-replace"})
_EFA = frozenset({"efa-received", "efa-sent", "efa-dropped"})


def eks_of(cluster: HyperpodCluster) -> str | None:
    """Name of the EKS cluster behind a cluster."""
    return cluster.eks_arn.rpartition("/")[2] if cluster.eks_arn else None


def build_notes(
    cluster: HyperpodCluster, source: Source, present: Collection[str], missing: Sequence[str]
) -> tuple[str, ...]:
    """Notes for the user.

    Args:
        cluster: The cluster.
        source: The source of the metrics.
        present: Names of the metrics with values.
        missing: Names of the supported metrics without values.
    """
    if not present:
        return (_no_metrics_note(cluster, source),)
    if source == "CloudWatch" and eks_of(cluster) is None:
        return ()
    reason = "the add-on is too old for them" if source == "CloudWatch" else "nothing exports them"
    absent = set(missing)
    notes = []
    if absent >= _GPUS:
        notes.append(f"no GPU metrics: the nodes have no GPUs, or {reason}")
    if absent >= _EFA:
        notes.append(f"no EFA metrics: the nodes have no EFA, or {reason}")
    if absent >= _HEALTH:
        notes.append(
            "no health metrics: the add-on is too old; update it"
            if source == "CloudWatch"
            else "no health metrics: the workspace has no node labels"
        )
    return tuple(notes)


def _no_metrics_note(cluster: HyperpodCluster, source: Source) -> str:
    eks = eks_of(cluster)
    if source == "Prometheus":
        return f"the workspace has no metrics of {cluster.name} for this time"
    return _no_metrics_of_slurm(cluster) if eks is None else _no_metrics_of_eks(eks, cluster.region)


def _no_metrics_of_eks(eks: str, region: str) -> str:
    return f"CloudWatch has no metrics of the EKS cluster {eks} for this time. Install the add-on amazon-cloudwatch-observability: aws eks create-addon --cluster-name {eks} --addon-name amazon-cloudwatch-observability --region {region} (the nodes' role needs the policy CloudWatchAgentServerPolicy). Or install HyperPod's observability add-on ({ADDON}), whose metrics come from Amazon Managed Service for Prometheus"


def _no_metrics_of_slurm(cluster: HyperpodCluster) -> str:
    return f'CloudWatch has no metrics of {cluster.name} in its namespace {SLURM} for this time. HyperPod\'s lifecycle scripts export metrics (GPUs, EFA, Slurm) to Amazon Managed Service for Prometheus: set that workspace in the configuration, as prometheus = "https://aps-workspaces..." under the cluster'


NODE_TABLE_METRICS = ("gpu-utilization", "gpu-memory", "efa-received", "efa-sent", "cpu")
"""The metrics in a table of nodes."""

_WORKSPACE_TTL_S = 300.0
"""TTL of a cluster's workspace, or of the error of finding it, in seconds."""

_ReadPrometheus = Callable[[PrometheusMetrics], Awaitable[list[MetricSet]]]
_ReadFallback = Callable[[], Awaitable[list[MetricSet]]]


class NodeMetrics:
    """Metrics in one region.

    Args:
        aws: AWS in that region.
        settings: The configuration, which may name clusters' workspaces.
    """

    def __init__(self, aws: Aws, settings: Settings | None = None) -> None:
        self.aws = aws
        self._settings = settings or Settings()
        self._workspaces: Cache[str, Workspace | HyperpodError | None] = Cache(_WORKSPACE_TTL_S)

    async def read_cluster(self, cluster: str, seconds: float) -> MetricSet:
        """Metrics of a whole cluster over the last seconds.

        Raises:
            InvalidInputError: The time range is too long, or the configured workspace is invalid.
            NotFoundError: The cluster does not exist.
            HyperpodError: See `aws.errors`.
        """
        window = last_seconds(seconds)
        description = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
            node_names = await self._instances_by_name(description)
            courses = await prometheus.read_cluster(list(node_names), window)
            return [build_metric_set(description, None, window, courses, "Prometheus")]

        async def fallback() -> list[MetricSet]:
            eks = eks_of(description)
            if eks is not None:
                queries = build_queries(EKS_METRICS, INSIGHTS, {"ClusterName": eks})
            else:
                queries = build_queries(SLURM_METRICS, SLURM, {"ClusterId": description.arn.rpartition("/")[2]})
            return [build_metric_set(description, None, window, await read_series(self.aws, queries, window))]

        (metric_set,) = await self.read_with_fallback(description, ask, fallback)
        return metric_set

    async def read_node(self, cluster: str, node: str, seconds: float) -> MetricSet:
        """Metrics of one node of a cluster over the last seconds.

        Args:
            cluster: Name or ARN.
            node: The node (see `find_instance`).
            seconds: How long to look back.

        Raises:
            InvalidInputError: The time range is too long, or the configured workspace is invalid.
            NotFoundError: The cluster or the node does not exist.
            UnsupportedError: The only source is CloudWatch, which has no metrics per node.
            HyperpodError: See `aws.errors`.
        """
        window = last_seconds(seconds)
        description = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
            instance = await find_instance(self.aws, cluster, node)
            name = node_name(description, instance)
            courses = (await prometheus.read_nodes([name], window))[name] if name else []
            return [build_metric_set(description, instance.name, window, courses, "Prometheus")]

        async def fallback() -> list[MetricSet]:
            return [await self._node_of_eks(description, node, window)]

        (metric_set,) = await self.read_with_fallback(description, ask, fallback)
        return metric_set

    async def read_nodes(self, cluster: str, seconds: float, limit: int | None = None) -> list[MetricSet]:
        """The most important metrics (`NODE_TABLE_METRICS`) of each node of a cluster, by instance id; nodes without metrics are omitted.

        Raises:
            InvalidInputError: The time range is too long, or the configured workspace is invalid.
            NotFoundError: The cluster does not exist.
            UnsupportedError: The only source is CloudWatch, which has no metrics per node.
            HyperpodError: See `aws.errors`.
        """
        window = last_seconds(seconds)
        description = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
            named_nodes = sorted((await self._instances_by_name(description)).items(), key=lambda pair: pair[1].name)
            names = {name: instance.name for name, instance in named_nodes[:limit]}
            courses = await prometheus.read_nodes(list(names), window, NODE_TABLE_METRICS)
            rows = (
                build_metric_set(description, names[name], window, node_courses, "Prometheus", notes=False)
                for name, node_courses in courses.items()
            )
            return [row for row in rows if row.courses]

        async def fallback() -> list[MetricSet]:
            return await self.nodes_of_eks(description, window, NODE_TABLE_METRICS, limit=limit)

        return await self.read_with_fallback(description, ask, fallback)

    async def nodes_of_eks(
        self, cluster: HyperpodCluster, window: TimeRange, metrics: Sequence[str], *, limit: int | None = None
    ) -> list[MetricSet]:
        """CloudWatch's metrics of each node of a cluster on EKS, by instance id; nodes without metrics are omitted.

        Args:
            cluster: The cluster.
            window: The time range.
            metrics: Which of `NODE_METRICS`.
            limit: Maximum number of nodes.

        Raises:
            UnsupportedError: The cluster is not on EKS.
            HyperpodError: See `aws.errors`.
        """
        nodes = await nodes_with_metrics(self.aws, _nodes_of(cluster))
        selected = sorted(nodes.items())[:limit]
        sources = {name: NODE_METRICS[name] for name in metrics}
        queries = [query for _, dimensions in selected for query in build_queries(sources, INSIGHTS, dimensions)]
        courses = await read_series(self.aws, queries, window)
        count = len(sources)
        rows = [
            build_metric_set(cluster, name, window, courses[index * count : (index + 1) * count], notes=False)
            for index, (name, _) in enumerate(selected)
        ]
        return [row for row in rows if row.courses]

    async def read_with_fallback(
        self, cluster: HyperpodCluster, from_prometheus: _ReadPrometheus, fallback: _ReadFallback
    ) -> list[MetricSet]:
        """Metrics from the cluster's workspace, or from CloudWatch if there is no workspace, or it is unreadable or empty; a note then says so.

        Args:
            cluster: The cluster.
            from_prometheus: Queries the workspace.
            fallback: Queries CloudWatch.

        Raises:
            InvalidInputError: The workspace of the configuration or the add-on is invalid.
            HyperpodError: From CloudWatch; from the workspace if CloudWatch has no such metrics or knows none of the nodes.
        """
        workspace_error: HyperpodError | None = None
        reason: str | None = None
        try:
            workspace = await self._workspace(cluster)
            if workspace is not None:
                metric_sets = await from_prometheus(PrometheusMetrics(self.aws, workspace, cluster))
                if any(metric_set.courses for metric_set in metric_sets):
                    return metric_sets
                reason = f"the workspace {workspace.url} has no such metrics for this time"
        except (DeniedError, UnreachableError, UnsupportedError) as error:
            workspace_error, reason = (error, f"Amazon Managed Service for Prometheus: {error.message}")
        try:
            cloudwatch_sets = await fallback()
        except UnsupportedError as error:
            if workspace_error is not None:
                raise workspace_error from None
            if reason is not None:
                raise UnsupportedError(f"{reason}, and {error.message}", hint=error.hint, detail=error.detail) from None
            raise
        if workspace_error is not None and not cloudwatch_sets:
            raise workspace_error
        return cloudwatch_sets if reason is None else [metric_set.with_notes(reason) for metric_set in cloudwatch_sets]

    async def _node_of_eks(self, cluster: HyperpodCluster, node: str, window: TimeRange) -> MetricSet:
        eks = _nodes_of(cluster)
        instance = (await find_instance(self.aws, cluster.name, node)).name
        dimensions_by_name = await metrics_of_node(self.aws, eks, instance)
        queries = [
            CloudWatchQuery(METRICS[name], source, INSIGHTS, dimensions_by_name[source.name])
            for name, source in NODE_METRICS.items()
            if source.name in dimensions_by_name
        ]
        courses = await read_series(self.aws, queries, window)
        present = {course.metric.name for course in courses}
        absent = [TimeSeries(METRICS[name], ()) for name in NODE_METRICS if name not in present]
        return build_metric_set(cluster, instance, window, [*courses, *absent])

    async def _instances_by_name(self, cluster: HyperpodCluster) -> dict[str, Instance]:
        """The instances of a cluster by their names in the workspace."""
        instances = [instance async for page in list_instances(self.aws, cluster.name) for instance in page]
        pairs = ((node_name(cluster, instance), instance) for instance in instances)
        return {name: instance for name, instance in pairs if name is not None}

    async def _workspace(self, cluster: HyperpodCluster) -> Workspace | None:
        """The workspace with a cluster's metrics: from the configuration, else from its add-on. Cached, including failures."""

        async def find() -> Workspace | HyperpodError | None:
            try:
                return await self._find_workspace(cluster)
            except (DeniedError, UnreachableError, UnsupportedError) as error:
                return error

        cached = await self._workspaces.get(cluster.arn, find)
        if isinstance(cached, HyperpodError):
            raise cached
        return cached

    async def _find_workspace(self, cluster: HyperpodCluster) -> Workspace | None:
        for name in configured_as(self._settings, cluster):
            workspace = self._settings.clusters[name].metrics_workspace
            if workspace is not None:
                return workspace_at(workspace, cluster.region)
        eks = eks_of(cluster)
        return None if eks is None else await workspace_of_addon(self.aws, eks)


def _nodes_of(cluster: HyperpodCluster) -> str:
    """Name of the EKS cluster behind a cluster, which has metrics per node in CloudWatch.

    Raises:
        UnsupportedError: The cluster is not on EKS.
    """
    eks = eks_of(cluster)
    if eks is None:
        raise UnsupportedError(
            f"CloudWatch has no metrics of single nodes of {cluster.name}, which is not on EKS",
            hint="set its workspace of Amazon Managed Service for Prometheus in the configuration (prometheus), or leave out the node to see the mean of all nodes",
            detail={"cluster": cluster.name},
        )
    return eks


def build_metric_set(
    cluster: HyperpodCluster,
    node: str | None,
    window: TimeRange,
    courses: Sequence[TimeSeries],
    source: Source = "CloudWatch",
    *,
    notes: bool = True,
) -> MetricSet:
    """Build the metric set, in the order of `METRICS`.

    Args:
        cluster: The cluster.
        node: The node; None: the whole cluster.
        window: The time range.
        courses: All supported metrics; those without a value are missing.
        source: The source.
        notes: Whether to add notes on missing metrics.
    """
    by_name = {course.metric.name: course for course in courses if course.points}
    present = {name: by_name[name] for name in METRICS if name in by_name}
    missing = tuple(course.metric.name for course in courses if not course.points)
    all_notes = build_notes(cluster, source, present.keys(), missing) if notes else ()
    return MetricSet(cluster.name, node, window, source, present, missing, all_notes)


# --------------------------------------------------------------------------------------------------
# Shared cache of metrics: AWS bills by metric and by query, so each is queried at most once a
# minute.

TTL_S = 60.0
"""TTL of an answer, in seconds: CloudWatch has no newer value before."""

_MAX_ENTRIES = 64
"""Maximum number of cached answers."""


@dataclass(frozen=True)
class MetricRequest:
    """A metrics request.

    Attributes:
        cluster: Name or ARN of a HyperPod cluster.
        seconds: How long to look back.
        node: Only this node.
        nodes: Instead of the whole cluster, each of at most this many of its nodes.
    """

    cluster: str
    seconds: int
    node: str | None = None
    nodes: int | None = None


class MetricCache:
    """Cached answers by request. Errors are not cached; concurrent callers share one request.

    Args:
        metrics: Metrics of clusters and nodes.
    """

    def __init__(self, metrics: NodeMetrics) -> None:
        self._metrics = metrics
        self._cache: Cache[MetricRequest, list[MetricSet]] = Cache(lambda _: TTL_S, limit=_MAX_ENTRIES)

    async def get(self, query: MetricRequest) -> list[MetricSet]:
        """The metrics: for a cluster or a node a list with one entry.

        Raises:
            HyperpodError: See `NodeMetrics`.
        """
        return await self._cache.get(query, lambda: self._load(query))

    async def _load(self, query: MetricRequest) -> list[MetricSet]:
        if query.nodes is not None:
            return await self._metrics.read_nodes(query.cluster, query.seconds, query.nodes)
        if query.node is not None:
            return [await self._metrics.read_node(query.cluster, query.node, query.seconds)]
        return [await self._metrics.read_cluster(query.cluster, query.seconds)]


def node_metrics(services: Hyperpod, region: str | None = None) -> NodeMetrics:
    """The metrics of HyperPod clusters of a region and of their nodes; default: see `aws.session.Aws`."""
    return services.get_or_make(NodeMetrics, region, lambda: NodeMetrics(Aws(region), services.settings))


def metric_cache(services: Hyperpod, region: str | None = None) -> MetricCache:
    """The same, cached for all callers."""
    return services.get_or_make(MetricCache, region, lambda: MetricCache(node_metrics(services, region)))
