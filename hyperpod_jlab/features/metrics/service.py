"""Metrics of HyperPod clusters and of their nodes: GPUs, EFA, health.

They come from the workspace of Amazon Managed Service for Prometheus where the cluster has one that can be read and has values, else from CloudWatch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.aws.clusters import list_instances
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import configured_as, find_cluster, find_instance
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance, region_of
from hyperpod_jlab.core.run import Attempt, Run
from hyperpod_jlab.engines.kubernetes.kinds.kind import object_name
from hyperpod_jlab.engines.registry import scheduler_named
from hyperpod_jlab.features.metrics.aws import (
    INSIGHTS,
    ON_EKS,
    ON_NODES,
    ON_PODS,
    ON_SLURM,
    SLURM,
    ask_for,
    metrics_of_node,
    nodes_with_metrics,
    pods_with_gpus,
    read_courses,
)
from hyperpod_jlab.features.metrics.aws import MetricQuery as Asked
from hyperpod_jlab.features.metrics.models import (
    METRICS,
    MetricSet,
    RunMeasured,
    Source,
    TimeRange,
    TimeSeries,
    between,
    last,
    mean_course,
    within,
)
from hyperpod_jlab.features.metrics.prometheus import (
    ADDON,
    OF_GPUS,
    PrometheusMetrics,
    Workspace,
    node_name,
    workspace_at,
    workspace_of_addon,
)
from hyperpod_jlab.run.service import Runs
from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# What is said of metrics that are not there.

_GPUS = frozenset({"gpu-utilization", "gpu-memory", "gpu-temperature"})
_HEALTH = frozenset({"healthy", "deep-health-check", "to-reboot", "to-replace"})
_EFA = frozenset({"efa-received", "efa-sent", "efa-dropped"})


def eks_of(cluster: HyperpodCluster) -> str | None:
    """Name of the EKS cluster behind a cluster."""
    return cluster.eks_arn.rpartition("/")[2] if cluster.eks_arn else None


def notes_on(
    cluster: HyperpodCluster, source: Source, shown: Collection[str], missing: Sequence[str]
) -> tuple[str, ...]:
    """What is to be said.

    Args:
        cluster: The cluster.
        source: Where the metrics are from.
        shown: Names of those that are there.
        missing: Names of those that could be there and are not.
    """
    if not shown:
        return (_none(cluster, source),)
    if source == "CloudWatch" and eks_of(cluster) is None:
        return ()
    why = "the add-on is too old for them" if source == "CloudWatch" else "nothing exports them"
    absent = set(missing)
    notes = []
    if absent >= _GPUS:
        notes.append(f"no GPU metrics: the nodes have no GPUs, or {why}")
    if absent >= _EFA:
        notes.append(f"no EFA metrics: the nodes have no EFA, or {why}")
    if absent >= _HEALTH:
        notes.append(
            "no health metrics: the add-on is too old; update it"
            if source == "CloudWatch"
            else "no health metrics: the workspace has no node labels"
        )
    return tuple(notes)


def _none(cluster: HyperpodCluster, source: Source) -> str:
    eks = eks_of(cluster)
    if source == "Prometheus":
        return f"the workspace has no metrics of {cluster.name} for this time"
    return _no_metrics_of_slurm(cluster) if eks is None else _no_metrics_of_eks(eks, cluster.region)


def _no_metrics_of_eks(eks: str, region: str) -> str:
    return f"CloudWatch has no metrics of the EKS cluster {eks} for this time. Install the add-on amazon-cloudwatch-observability: aws eks create-addon --cluster-name {eks} --addon-name amazon-cloudwatch-observability --region {region} (the nodes' role needs the policy CloudWatchAgentServerPolicy). Or install HyperPod's observability add-on ({ADDON}), whose metrics come from Amazon Managed Service for Prometheus"


def _no_metrics_of_slurm(cluster: HyperpodCluster) -> str:
    return f'CloudWatch has no metrics of {cluster.name} in its namespace {SLURM} for this time. HyperPod\'s lifecycle scripts export metrics (GPUs, EFA, Slurm) to Amazon Managed Service for Prometheus: set that workspace in the configuration, as prometheus = "https://aps-workspaces..." under the cluster'


BY_NODE = ("gpu-utilization", "gpu-memory", "efa-received", "efa-sent", "cpu")
"""The metrics of each node in a table of nodes."""

_KNOWN_FOR = 300.0
"""Seconds for which it is remembered which workspace a cluster has, or why that is not known."""

_Measuring = Callable[[PrometheusMetrics], Awaitable[list[MetricSet]]]
_Otherwise = Callable[[], Awaitable[list[MetricSet]]]


class NodeMetrics:
    """Metrics in one region.

    Args:
        aws: AWS in that region.
        settings: The configuration, which may name clusters' workspaces.
    """

    def __init__(self, aws: Aws, settings: Settings | None = None) -> None:
        self.aws = aws
        self._settings = settings or Settings()
        self._workspaces: Cache[str, Workspace | HyperpodError | None] = Cache(_KNOWN_FOR)

    async def of_cluster(self, cluster: str, seconds: float) -> MetricSet:
        """Metrics of a whole cluster over the last seconds.

        Raises:
            InvalidInputError: These are too many seconds, or what the configuration names is no workspace.
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
            named = await self._named(found)
            courses = await prometheus.of_cluster(list(named), window)
            return [measured(found, None, window, courses, "Prometheus")]

        async def otherwise() -> list[MetricSet]:
            eks = eks_of(found)
            if eks is not None:
                asked = ask_for(ON_EKS, INSIGHTS, {"ClusterName": eks})
            else:
                asked = ask_for(ON_SLURM, SLURM, {"ClusterId": found.arn.rpartition("/")[2]})
            return [measured(found, None, window, await read_courses(self.aws, asked, window))]

        (one,) = await self.first_of(found, ask, otherwise)
        return one

    async def of_node(self, cluster: str, node: str, seconds: float) -> MetricSet:
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

        async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
            instance = await find_instance(self.aws, cluster, node)
            name = node_name(found, instance)
            courses = (await prometheus.of_nodes([name], window))[name] if name else []
            return [measured(found, instance.name, window, courses, "Prometheus")]

        async def otherwise() -> list[MetricSet]:
            return [await self._node_of_eks(found, node, window)]

        (one,) = await self.first_of(found, ask, otherwise)
        return one

    async def of_nodes(
        self, cluster: str, seconds: float, limit: int | None = None
    ) -> list[MetricSet]:
        """The most important metrics (`BY_NODE`) of each node of a cluster, by instance id; nodes of which there are none are left out.

        Raises:
            InvalidInputError: These are too many seconds, or what the configuration names is no workspace.
            NotFoundError: There is no such cluster.
            UnsupportedError: Only CloudWatch could be asked, which has none of single nodes.
            HyperpodError: See `aws.errors`.
        """
        window = last(seconds)
        found = await find_cluster(self.aws, cluster)

        async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
            named = sorted((await self._named(found)).items(), key=lambda pair: pair[1].name)
            names = {name: instance.name for name, instance in named[:limit]}
            courses = await prometheus.of_nodes(list(names), window, BY_NODE)
            rows = (
                measured(found, names[name], window, own, "Prometheus", notes=False)
                for name, own in courses.items()
            )
            return [row for row in rows if row.courses]

        async def otherwise() -> list[MetricSet]:
            return await self.nodes_of_eks(found, window, BY_NODE, limit=limit)

        return await self.first_of(found, ask, otherwise)

    async def nodes_of_eks(
        self,
        cluster: HyperpodCluster,
        window: TimeRange,
        metrics: Sequence[str],
        *,
        only: Collection[str] | None = None,
        limit: int | None = None,
    ) -> list[MetricSet]:
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
    ) -> list[MetricSet]:
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
                why = f"the workspace {workspace.url} has no such metrics for this time"
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

    async def _node_of_eks(
        self, cluster: HyperpodCluster, node: str, window: TimeRange
    ) -> MetricSet:
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
        absent = [TimeSeries(METRICS[name], ()) for name in ON_NODES if name not in there]
        return measured(cluster, instance, window, [*courses, *absent])

    async def _named(self, cluster: HyperpodCluster) -> dict[str, Instance]:
        """The instances of a cluster by what the workspace calls them."""
        every = [one async for page in list_instances(self.aws, cluster.name) for one in page]
        named = ((node_name(cluster, one), one) for one in every)
        return {name: one for name, one in named if name is not None}

    async def _workspace(self, cluster: HyperpodCluster) -> Workspace | None:
        """The workspace that has a cluster's metrics: the one of the configuration, else its add-on's. Kept for a while, also when it is not known."""

        async def find() -> Workspace | HyperpodError | None:
            try:
                return await self._find_workspace(cluster)
            except (DeniedError, UnreachableError, UnsupportedError) as error:
                return error

        known = await self._workspaces.get(cluster.arn, find)
        if isinstance(known, HyperpodError):
            raise known
        return known

    async def _find_workspace(self, cluster: HyperpodCluster) -> Workspace | None:
        for name in configured_as(self._settings, cluster):
            workspace = self._settings.clusters[name].metrics_workspace
            if workspace is not None:
                return workspace_at(workspace, cluster.region)
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
            hint="set its workspace of Amazon Managed Service for Prometheus in the configuration (prometheus), or leave out the node to see the mean of all nodes",
            detail={"cluster": cluster.name},
        )
    return eks


def measured(
    cluster: HyperpodCluster,
    node: str | None,
    window: TimeRange,
    courses: Sequence[TimeSeries],
    source: Source = "CloudWatch",
    *,
    notes: bool = True,
) -> MetricSet:
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
    return MetricSet(cluster.name, node, window, source, shown, missing, told)


# --------------------------------------------------------------------------------------------------
# Metrics of a run: of the nodes that it is or was on, while it was.
#
# On EKS those of GPUs are of the run's own pods where the pods are told apart: the workspace does that for each node, CloudWatch for the run as a whole. All
# others are of whole nodes.

OF_RUN = (
    "gpu-utilization",
    "gpu-memory",
    "gpu-temperature",
    "efa-received",
    "efa-sent",
    "efa-dropped",
    "cpu",
    "memory",
)
"""The metrics of a run."""

_NODE = "hyperpod-"
"""What a node's name in Kubernetes has before the instance's id."""

_PODS = "GPU values of the run cover its own pods; those of a single node cover all its GPUs, including other jobs'"

_SHARED = "GPU values cover whole nodes, including other jobs on them"


class RunMetrics:
    """Metrics of runs.

    Args:
        metrics_in: Who asks AWS in a region; None: where a plain name is.
        runs: The runs.
        settings: The configuration, which tells the HyperPod cluster behind a run's cluster.
    """

    def __init__(
        self, metrics_in: Callable[[str | None], NodeMetrics], runs: Runs, settings: Settings
    ) -> None:
        self._metrics_in = metrics_in
        self._runs = runs
        self._settings = settings

    async def of_run(self, run_id: str, attempt: int | None = None) -> RunMeasured:
        """Metrics of a run's nodes, over all its attempts.

        Args:
            run_id: The run.
            attempt: Only while this attempt ran.

        Raises:
            NotFoundError: There is no such run or attempt, or AWS has no such cluster.
            ConflictError: It has not begun.
            UnsupportedError: There are none of its cluster, and why.
            InvalidInputError: What the configuration names is no workspace.
            HyperpodError: See `aws.errors`.
        """
        run = await self._runs.get(run_id)
        cluster = self._hyperpod_of(run)
        attempts = _attempts(run, attempt)
        begin = min(one.started_at or 0.0 for one in attempts)
        ends = [one.ended_at for one in attempts if one.ended_at is not None]
        window = between(begin, max(ends) if len(ends) == len(attempts) else None)
        names = list(dict.fromkeys(node for one in attempts for node in one.nodes))
        metrics = self._metrics_in(region_of(cluster))
        found = await find_cluster(metrics.aws, cluster)
        rows = await _on_nodes(metrics, found, names, window, run)
        own = [_own(one, attempts) for one in rows if one.node is not None]
        pods = [one for one in rows if one.node is None]
        return RunMeasured(run_id, _whole(found, own, pods, window), tuple(own))

    def _hyperpod_of(self, run: Run) -> str:
        """The HyperPod cluster that a run is on.

        Raises:
            UnsupportedError: It is on none, or that is not known.
        """
        detail = {"run_id": run.run_id, "cluster": run.cluster}
        if run.children:
            raise UnsupportedError(
                f"{run.run_id} is an array; only its children have metrics",
                hint=f"choose a child: {run.run_id}.0",
                detail=detail,
            )
        config = self._settings.clusters.get(run.cluster)
        kinds = {run.orchestrator, config.orchestrator if config is not None else None}
        if any(kind and (found := scheduler_named(kind)) and found.here for kind in kinds):
            raise UnsupportedError(
                f"{run.run_id} ran on this machine, and only HyperPod clusters have metrics",
                detail=detail,
            )
        hyperpod = config.hyperpod_cluster if config is not None else None
        if hyperpod is None:
            raise UnsupportedError(
                f"the configuration does not name the HyperPod cluster of {run.cluster}",
                hint=f'write hyperpod = "NAME" under [clusters.{run.cluster}] in the configuration',
                detail=detail,
            )
        return hyperpod


async def _on_nodes(
    metrics: NodeMetrics,
    cluster: HyperpodCluster,
    names: Sequence[str],
    window: TimeRange,
    run: Run,
) -> list[MetricSet]:
    async def ask(prometheus: PrometheusMetrics) -> list[MetricSet]:
        pods = _pods_of(run) if cluster.eks_arn is not None else None
        courses = await prometheus.of_nodes(names, window, OF_RUN, pods)
        shared = pods is None or not _has_gpus(courses.values())
        if pods is not None and shared:
            without = await prometheus.of_nodes(names, window, OF_GPUS)
            courses = {name: _joined(courses[name], without[name]) for name in names}
        rows = (
            measured(cluster, name, window, own, "Prometheus", notes=False)
            for name, own in courses.items()
        )
        notes = (_SHARED,) if shared and _has_gpus(courses.values()) else ()
        return [row.noting(*notes) for row in rows if row.courses]

    async def otherwise() -> list[MetricSet]:
        by_id = {name.removeprefix(_NODE): name for name in names}
        rows = await metrics.nodes_of_eks(cluster, window, OF_RUN, only=by_id.keys())
        if not rows:
            return []
        pods = await _gpus_of_pods(metrics.aws, cluster, run, window)
        note = _PODS if pods.courses else _SHARED
        named = [replace(row, node=by_id[row.node or ""]).noting(note) for row in rows]
        return [*named, *([pods] if pods.courses else [])]

    return await metrics.first_of(cluster, ask, otherwise)


async def _gpus_of_pods(
    aws: Aws, cluster: HyperpodCluster, run: Run, window: TimeRange
) -> MetricSet:
    """What CloudWatch has of the GPUs of a run's pods: the mean over the pods."""
    eks = eks_of(cluster) or ""
    pods = await pods_with_gpus(aws, eks, _pods_of(run))
    asked = [one for on in pods for one in ask_for(ON_PODS, INSIGHTS, on)]
    courses = await read_courses(aws, asked, window) if asked else []
    means = [
        mean_course([one for one in courses if one.metric.name == name])
        for name in (ON_PODS if courses else ())
    ]
    return measured(cluster, None, window, means, notes=False)


def _pods_of(run: Run) -> str:
    """What the names of a run's pods begin with; an array's pods have their index after its name, as a Job's do."""
    return object_name(run.run_id.replace(".", "-"))


def _attempts(run: Run, number: int | None) -> list[Attempt]:
    """The attempts that began.

    Raises:
        NotFoundError: There is no such attempt.
        ConflictError: None began.
    """
    every = [one for one in run.status.attempts if number is None or one.number == number]
    if number is not None and not every:
        raise NotFoundError(
            f"{run.run_id} has no attempt {number}",
            hint=f"see: hpj show {run.run_id}",
            detail={"field": "attempt", "run_id": run.run_id},
        )
    begun = [one for one in every if one.started_at is not None and one.nodes]
    if not begun:
        raise ConflictError(
            f"{run.run_id} has not started on any node ({run.state}), so it has no metrics",
            code="wrong_state",
            hint=f"see: hpj why {run.run_id}",
            detail={"run_id": run.run_id, "state": run.state},
        )
    return begun


def _own(row: MetricSet, attempts: Iterable[Attempt]) -> MetricSet:
    """What was measured on a node while the run was on it."""
    spans = [
        (one.started_at or 0.0, one.ended_at or float("inf"))
        for one in attempts
        if row.node in one.nodes
    ]
    kept = {name: within(course, spans, row.window.period) for name, course in row.courses.items()}
    return replace(row, courses={name: course for name, course in kept.items() if course.points})


def _whole(
    cluster: HyperpodCluster,
    rows: Sequence[MetricSet],
    pods: Sequence[MetricSet],
    window: TimeRange,
) -> MetricSet:
    """The mean over the nodes, with what is said of any of them; what is known of the run's pods goes before that."""
    courses = []
    for name in OF_RUN:
        own = [row.courses[name] for row in pods if name in row.courses]
        some = own or [row.courses[name] for row in rows if name in row.courses]
        courses.extend([mean_course(some)] if some else [])
    there = {course.metric.name for course in courses}
    source = rows[0].source if rows else "CloudWatch"
    whole = measured(cluster, None, window, courses, source, notes=False)
    notes = tuple(dict.fromkeys(note for row in rows for note in row.notes))
    missing = tuple(name for name in OF_RUN if name not in there)
    if not rows:
        notes = (
            f"neither the workspace of {cluster.name} nor CloudWatch has metrics of the run's nodes for this time",
        )
    return replace(whole, missing=missing, notes=notes)


def _has_gpus(courses: Iterable[Sequence[TimeSeries]]) -> bool:
    return any(one.points for own in courses for one in own if one.metric.name in OF_GPUS)


def _joined(courses: Sequence[TimeSeries], gpus: Sequence[TimeSeries]) -> list[TimeSeries]:
    """Courses, with those of GPUs instead of their own."""
    return [*gpus, *(one for one in courses if one.metric.name not in OF_GPUS)]


# --------------------------------------------------------------------------------------------------
# Metrics for many who look: AWS, which bills by the metric and by the query, is asked once a minute for each thing.

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
        self._cache: Cache[MetricQuery, list[MetricSet]] = Cache(lambda _: FRESH, limit=_MOST)

    async def get(self, query: MetricQuery) -> list[MetricSet]:
        """What was measured; for a cluster or a node a list of one, for a run its mean and then each of its nodes.

        Raises:
            HyperpodError: See `NodeMetrics` and `RunMetrics`.
        """
        return await self._cache.get(query, lambda: self._look(query))

    async def _look(self, query: MetricQuery) -> list[MetricSet]:
        if query.run is not None:
            found = await self._runs.of_run(query.run, query.attempt)
            return [found.whole, *found.nodes]
        if query.nodes is not None:
            return await self._metrics.of_nodes(query.cluster, query.seconds, query.nodes)
        if query.node is not None:
            return [await self._metrics.of_node(query.cluster, query.node, query.seconds)]
        return [await self._metrics.of_cluster(query.cluster, query.seconds)]


def node_metrics_in(services: Hyperpod, region: str | None = None) -> NodeMetrics:
    """The metrics of HyperPod clusters of a region and of their nodes; default: see `aws.session.Aws`."""
    return services.kept(NodeMetrics, region, lambda: NodeMetrics(Aws(region), services.settings))


def run_metrics_in(services: Hyperpod, region: str | None = None) -> RunMetrics:
    """The metrics of runs; the region is that of clusters that the configuration has by a plain name."""
    return RunMetrics(
        lambda own: node_metrics_in(services, own or region), services.runs, services.settings
    )


def metric_looks_in(services: Hyperpod, region: str | None = None) -> MetricLooks:
    """Both, kept for all who look."""
    return services.kept(
        MetricLooks,
        region,
        lambda: MetricLooks(node_metrics_in(services, region), run_metrics_in(services, region)),
    )
