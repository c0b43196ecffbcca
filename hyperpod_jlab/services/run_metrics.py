"""Metrics of a run: of the nodes that it is or was on, while it was.

On EKS those of GPUs are of the run's own pods where the pods are told apart: the workspace does that for each node, CloudWatch for the run as a whole. All
others are of whole nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hyperpod_jlab.aws.metrics import (
    INSIGHTS,
    ON_PODS,
    ask_for,
    pods_with_gpus,
    read_courses,
)
from hyperpod_jlab.aws.prometheus_metrics import OF_GPUS
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.config import LocalCluster, Settings
from hyperpod_jlab.model.errors import ConflictError, NotFoundError, UnsupportedError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, region_of
from hyperpod_jlab.model.node_metrics import (
    Course,
    Measured,
    RunMeasured,
    Window,
    mean_course,
    within,
)
from hyperpod_jlab.model.run import Attempt, Run
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import object_name
from hyperpod_jlab.services.hyperpod_instances import find_cluster
from hyperpod_jlab.services.metric_notes import eks_of
from hyperpod_jlab.services.metric_windows import between
from hyperpod_jlab.services.node_metrics import NodeMetrics, measured
from hyperpod_jlab.services.prometheus_metrics import PrometheusMetrics
from hyperpod_jlab.services.runs import Runs

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

_PODS = (
    "GPUs are those of the run's pods; of a single node all are counted, also those of other jobs"
)

_SHARED = "GPUs are counted on whole nodes: other jobs on them count too"


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
                f"{run.run_id} is an array: its runs have metrics",
                hint=f"name one of them: {run.run_id}.0",
                detail=detail,
            )
        config = self._settings.clusters.get(run.cluster)
        if isinstance(config, LocalCluster) or run.orchestrator == "local":
            raise UnsupportedError(
                f"{run.run_id} ran on this machine: metrics are of HyperPod clusters",
                detail=detail,
            )
        if config is None or config.hyperpod is None:
            raise UnsupportedError(
                f"it is not known which HyperPod cluster is behind {run.cluster}",
                hint=f'in the configuration under [clusters.{run.cluster}]: hyperpod = "NAME"',
                detail=detail,
            )
        return config.hyperpod


async def _on_nodes(
    metrics: NodeMetrics,
    cluster: HyperpodCluster,
    names: Sequence[str],
    window: Window,
    run: Run,
) -> list[Measured]:
    async def ask(prometheus: PrometheusMetrics) -> list[Measured]:
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

    async def otherwise() -> list[Measured]:
        by_id = {name.removeprefix(_NODE): name for name in names}
        rows = await metrics.nodes_of_eks(cluster, window, OF_RUN, only=by_id.keys())
        if not rows:
            return []
        pods = await _gpus_of_pods(metrics.aws, cluster, run, window)
        note = _PODS if pods.courses else _SHARED
        named = [replace(row, node=by_id[row.node or ""]).noting(note) for row in rows]
        return [*named, *([pods] if pods.courses else [])]

    return await metrics.first_of(cluster, ask, otherwise)


async def _gpus_of_pods(aws: Aws, cluster: HyperpodCluster, run: Run, window: Window) -> Measured:
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
            f"{run.run_id} has not begun on any node ({run.state}), so it has no metrics",
            code="wrong_state",
            hint=f"see: hpj why {run.run_id}",
            detail={"run_id": run.run_id, "state": run.state},
        )
    return begun


def _own(row: Measured, attempts: Iterable[Attempt]) -> Measured:
    """What was measured on a node while the run was on it."""
    spans = [
        (one.started_at or 0.0, one.ended_at or float("inf"))
        for one in attempts
        if row.node in one.nodes
    ]
    kept = {name: within(course, spans, row.window.period) for name, course in row.courses.items()}
    return replace(row, courses={name: course for name, course in kept.items() if course.points})


def _whole(
    cluster: HyperpodCluster, rows: Sequence[Measured], pods: Sequence[Measured], window: Window
) -> Measured:
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
            f"there are no metrics of the run's nodes in this time: neither of {cluster.name}'s workspace nor of CloudWatch",
        )
    return replace(whole, missing=missing, notes=notes)


def _has_gpus(courses: Iterable[Sequence[Course]]) -> bool:
    return any(one.points for own in courses for one in own if one.metric.name in OF_GPUS)


def _joined(courses: Sequence[Course], gpus: Sequence[Course]) -> list[Course]:
    """Courses, with those of GPUs instead of their own."""
    return [*gpus, *(one for one in courses if one.metric.name not in OF_GPUS)]
