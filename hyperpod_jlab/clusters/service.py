"""The clusters according to their schedulers and AWS: all of them, one of them, and its nodes. Shared by the command line and the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.cache import Cache, CachedRows, Snapshot, Snapshots
from hyperpod_jlab.core.cluster import Cluster, Node, notes_of
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance, region_of
from hyperpod_jlab.core.nodes import JoinedNode, is_changing, join_nodes, node_row
from hyperpod_jlab.core.reach import configure_command
from hyperpod_jlab.engines.protocol import Orchestrator, require_tables
from hyperpod_jlab.engines.registry import Engines

T = TypeVar("T")

TIMEOUT_S = 6.0
"""Timeout per cluster of a list, in seconds."""

_TTL_S = 60.0
"""TTL, in seconds, of an answer that came after the timeout."""

_AWS_WAIT_S = 1.0
"""Seconds to wait for the second source after the first has answered; then the response is sent without it."""


@dataclass(frozen=True)
class ClusterList:
    """The clusters.

    Attributes:
        clusters: The configured ones in the order of the configuration, then those that only AWS knows.
        as_of: When AWS was queried (Unix seconds); None: it was not.
        problem: Why AWS' clusters are missing or old.
        loading: Whether more data from AWS is on its way.
        notes: Notes on the list, one sentence each.
    """

    clusters: list[Cluster]
    as_of: float | None = None
    problem: HyperpodError | None = None
    loading: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeList(Generic[T]):
    """The nodes of a cluster.

    Attributes:
        nodes: One row per node.
        as_of: When the scheduler was asked; AWS, if the scheduler does not answer (Unix seconds).
        problem: Why there is no newer data.
        loading: Whether more data is on its way.
        changing: Whether instances are being added or removed; then poll again soon.
        notes: Notes for the user, one sentence each.
        partial: Whether a source has not answered, so that its rows or data are missing.
    """

    nodes: list[T]
    as_of: float | None = None
    problem: HyperpodError | None = None
    loading: bool = False
    changing: bool = False
    notes: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class ResolvedCluster:
    """The cluster that a name refers to.

    Attributes:
        configured: Its name in the configuration; None if it is not configured.
        hyperpod: Its name or ARN at AWS; None if it is not a HyperPod cluster.
        region: The AWS region to query; None: see `aws.session.Aws`.
        problem: Why AWS could not identify the HyperPod cluster.
    """

    configured: str | None
    hyperpod: str | None
    region: str | None = None
    problem: HyperpodError | None = None

    @property
    def aws_name(self) -> str:
        """The name or ARN at AWS, if it is a HyperPod cluster."""
        assert self.hyperpod is not None, "it is a HyperPod cluster"
        return self.hyperpod


class Clusters:
    """The clusters of one configuration and of the AWS account.

    Args:
        settings: The configuration.
        engines: The engines of its clusters.
        aws_in: The HyperPod clusters of a region (None: see `aws.session.Aws`).
    """

    def __init__(self, settings: Settings, engines: Engines, aws_in: Callable[[str | None], HyperpodClusters]) -> None:
        self._settings = settings
        self._engines = engines
        self._aws_in = aws_in
        self._last_rows: dict[str, Cluster] = {}
        self._cache: Cache[str, Cluster] = Cache(lambda _: _TTL_S)
        self.snapshots = Snapshots()

    async def list_all(
        self,
        region: str | None = None,
        *,
        refresh: bool = False,
        seconds: float | None = None,
        wait: float | None = None,
        aws: bool = True,
    ) -> ClusterList:
        """List all clusters: the configured ones, and the HyperPod clusters of the AWS account.

        Args:
            region: The region whose HyperPod clusters are listed; None: see `aws.session.Aws`.
            refresh: Query the schedulers and AWS now, even if nothing on this machine points to an account.
            seconds: Timeout per configured cluster; default: `TIMEOUT_S`.
            wait: Seconds to wait for all data from AWS; default: a moment.
            aws: Whether to query AWS; if not, only the configured clusters are listed.
        """
        if not aws:
            return ClusterList(await self.configured(seconds))
        lines, (cached, problem, notes) = await asyncio.gather(
            self.configured(seconds), self._list_aws(region, wait, refresh=refresh)
        )
        aws_clusters = cached.rows if cached else []
        rows = [self._add_aws(line, aws_clusters) for line in lines]
        rows += [self._unconfigured_row(cluster, region) for cluster in aws_clusters if not cluster.configured_as]
        if cached is None:
            return ClusterList(rows, problem=problem, loading=problem is None, notes=notes)
        return ClusterList(rows, cached.as_of, cached.problem, cached.loading, notes)

    async def configured(self, seconds: float | None = None) -> list[Cluster]:
        """The configured clusters, in the order of the configuration.

        A cluster that does not answer gives the reason and the numbers of its last answer. An answer that arrives after `seconds` is cached for the next
        call.

        Args:
            seconds: Timeout per cluster; default: `TIMEOUT_S`.
        """
        wait = TIMEOUT_S if seconds is None else seconds
        return list(await asyncio.gather(*(self._read_within(name, wait) for name in self._settings.clusters)))

    async def one(self, name: str) -> Cluster:
        """A configured cluster, without a timeout."""
        default = name == self._settings.default_cluster
        try:
            engine = self._engines.get(name)
            changes = engine.actions.changes if engine.actions is not None else ()
            actions = _actions_of(engine)
            line = replace(await engine.cluster(), default=default, actions=actions, changes=changes)
        except HyperpodError as error:
            return self._unreachable_row(name, error.message)
        if line.as_of is None:
            line = replace(line, as_of=time.time())
        self._last_rows[name] = line
        return line

    async def hyperpod(
        self, name: str, region: str | None = None, *, refresh: bool = False, wait: float | None = None
    ) -> CachedRows[HyperpodCluster] | None:
        """A cluster's data from AWS; None if it is not a HyperPod cluster.

        Args:
            name: Its name in the configuration, or its name or ARN in AWS.
            region: Its region; default: see `aws.session.Aws`.
            refresh: Query AWS now.
            wait: Seconds to wait for the reachability check; default: none.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        resolved = await self.resolve(name, region)
        if resolved.problem is not None:
            raise resolved.problem
        if resolved.hyperpod is None:
            return None
        aws = self._aws_in(resolved.region)
        return await aws.cluster(resolved.hyperpod, refresh=refresh, wait=wait)

    async def cluster(
        self, name: str, region: str | None = None, *, wait: float | None = None, seconds: float | None = None
    ) -> Cluster:
        """A cluster, configured or not.

        Args:
            name: Its name in the configuration, or its name or ARN in AWS.
            region: Its region; default: see `aws.session.Aws`.
            wait: Seconds to wait for the reachability check; default: none.
            seconds: Timeout of its scheduler; default: none.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: It is not configured, and AWS does not answer (see `aws.errors`).
        """

        async def line_of(configured: str) -> Cluster:
            if seconds is None:
                return await self.one(configured)
            return await self._read_within(configured, seconds)

        resolved = await self.resolve(name, region)
        if resolved.configured is None:
            cached = await self.hyperpod(name, region, wait=wait)
            assert cached is not None, "what is not configured is AWS'"
            configured_names = cached.rows[0].configured_as
            if not configured_names:
                return self._unconfigured_row(cached.rows[0], region)
            return replace(await line_of(configured_names[0]), hyperpod=cached.rows[0])
        line = await line_of(resolved.configured)
        try:
            cached = await self.hyperpod(name, region, wait=wait)
        except HyperpodError as error:
            note = f"AWS does not describe it: {_error_text(error)}"
            return replace(line, notes=(*line.notes, note))
        return line if cached is None else replace(line, hyperpod=cached.rows[0])

    async def resolve(self, name: str | None, region: str | None = None) -> ResolvedCluster:
        """Resolve the name of a cluster.

        Args:
            name: Its name in the configuration, or its name or ARN in AWS; None: the configuration's default cluster.
            region: Its region, if it is not configured; default: see `aws.session.Aws`.

        Raises:
            NotFoundError: It is not configured, and nothing on this machine points to an AWS account. Does not check whether AWS has the cluster.
        """
        name = self._settings.default_cluster if name is None else name
        config = self._settings.clusters.get(name)
        if config is not None:
            hyperpod, problem = config.hyperpod_cluster, None
            if hyperpod is None and config.at_aws:
                hyperpod, problem = await self._hyperpod_of(name, region)
            arn_region = region_of(hyperpod) if hyperpod else None
            return ResolvedCluster(name, hyperpod, arn_region or region, problem)
        config_name = self._name_of(name) if region is None else None
        if config_name is not None:
            return ResolvedCluster(config_name, name, region_of(name))
        target_region = region_of(name) or region
        if target_region is None and not await asyncio.to_thread(self._aws_in(None).points_to_aws):
            raise self._settings.unknown_cluster(
                name, "no AWS credentials found, so HyperPod clusters were not searched"
            )
        return ResolvedCluster(None, name, target_region)

    def configured_name(self, name: str | None) -> str | None:
        """The name in the configuration of a cluster that may be given by its AWS name; None: the default cluster.

        Raises:
            NotFoundError: It is not configured.
        """
        if name is None or name in self._settings.clusters:
            return name
        config_name = self._name_of(name)
        if config_name is None:
            raise self._settings.unknown_cluster(name)
        return config_name

    def _name_of(self, hyperpod: str) -> str | None:
        """The name in the configuration of the cluster with this name or ARN at AWS."""
        clusters = self._settings.clusters.items()
        return next((name for name, config in clusters if config.hyperpod_cluster == hyperpod), None)

    async def resolve_hyperpod(self, name: str | None, region: str | None = None) -> ResolvedCluster:
        """Resolve the name of a HyperPod cluster; `hyperpod` is set.

        Raises:
            InvalidInputError: The cluster is configured, but not as a HyperPod cluster (``no_hyperpod_cluster``).
            NotFoundError: See `resolve`.
            HyperpodError: AWS cannot identify the HyperPod cluster.
        """
        resolved = await self.resolve(name, region)
        if resolved.problem is not None:
            raise resolved.problem
        if resolved.hyperpod is None:
            raise self.not_hyperpod_error(resolved.configured or "")
        return resolved

    def not_hyperpod_error(self, configured: str) -> InvalidInputError:
        """The error for a configured cluster that is not known to be a HyperPod cluster."""
        if "hyperpod" in type(self._settings.clusters[configured]).model_fields:
            message = f"the configuration does not name the HyperPod cluster of {configured}"
            hint = f'write hyperpod = "NAME" under [clusters.{configured}], or choose a cluster with --cluster'
        else:
            message = f"{configured} is not a HyperPod cluster"
            hint = "choose one with --cluster; list clusters with: hpj clusters"
        return InvalidInputError(message, code="no_hyperpod_cluster", hint=hint, detail={"field": "cluster"})

    async def nodes(
        self, name: str | None = None, region: str | None = None, *, refresh: bool = False, wait: float | None = None
    ) -> NodeList[Node]:
        """The nodes of a cluster: one row each, with data from its scheduler and, on HyperPod, AWS (see `joined_nodes`)."""
        joined = await self.joined_nodes(name, region, refresh=refresh, wait=wait)
        rows = await asyncio.to_thread(lambda: [node_row(node) for node in joined.nodes])
        return NodeList(
            rows, joined.as_of, joined.problem, joined.loading, joined.changing, joined.notes, joined.partial
        )

    async def joined_nodes(
        self, name: str | None = None, region: str | None = None, *, refresh: bool = False, wait: float | None = None
    ) -> NodeList[JoinedNode]:
        """The scheduler's nodes, joined with AWS' instances on HyperPod.

        Args:
            name: Its name in the configuration, or its name or ARN in AWS; None: the configuration's default cluster.
            region: Its region, if it is not configured; default: see `aws.session.Aws`.
            refresh: Query AWS now.
            wait: Seconds to wait for the second source after the first has answered; default: a moment.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: Neither source answers.
        """
        resolved = await self.resolve(name, region)
        configured, cluster = resolved.configured, None
        notes: list[str] = []
        if configured is None:
            assert resolved.hyperpod is not None, "what is not configured is AWS'"
            cluster, notes = await self.describe_hyperpod(resolved.hyperpod, resolved.region)
            configured = next(iter(cluster.configured_as), None)
        aws_wait = _AWS_WAIT_S if wait is None else wait
        listing: asyncio.Task[CachedRows[Instance]] | None = None
        if resolved.hyperpod is not None:
            aws = self._aws_in(resolved.region)
            listing = asyncio.ensure_future(aws.instances(resolved.hyperpod, refresh=refresh, wait=wait))
        try:
            if configured is None:
                assert listing is not None
                assert cluster is not None
                if not notes:
                    notes.append(f"no scheduler was asked, because {cluster.name} is not configured")
                return _aws_rows(await listing, notes)
            return await self._joined(configured, resolved, listing, aws_wait, notes)
        finally:
            if listing is not None:
                listing.cancel()

    async def scheduler_nodes(self, name: str) -> Snapshot[Sequence[Node]]:
        """The nodes of a configured cluster from its scheduler, with a short cache.

        Raises:
            UnreachableError: The scheduler does not answer, and nothing is cached.
        """
        return await self.snapshots.last(("nodes", name), lambda: require_tables(self._engines.get(name)).nodes())

    async def close(self) -> None:
        """Cancel all requests."""
        await self._cache.close()

    async def _joined(
        self,
        configured: str,
        resolved: ResolvedCluster,
        listing: asyncio.Task[CachedRows[Instance]] | None,
        aws_wait: float,
        notes: list[str],
    ) -> NodeList[JoinedNode]:
        """The scheduler's nodes joined with the instances; one source alone if the other does not answer."""
        if listing is None or resolved.hyperpod is None:
            try:
                snapshot = await self.scheduler_nodes(configured)
            except HyperpodError as error:
                raise _both_failed(error, resolved.problem) from None
            notes += [*_unlisted_notes(resolved.problem), *notes_of(snapshot.value)]
            rows = [JoinedNode(None, node) for node in snapshot.value]
            return NodeList(
                rows, snapshot.as_of, snapshot.problem, notes=tuple(notes), partial=resolved.problem is not None
            )
        scheduler_task = asyncio.ensure_future(self.scheduler_nodes(configured))
        try:
            await asyncio.wait({scheduler_task, listing}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({scheduler_task, listing}, timeout=aws_wait)
            if not isinstance(_task_result(scheduler_task), Snapshot):
                await asyncio.wait({listing})
            if not isinstance(_task_result(listing), CachedRows):
                await asyncio.wait({scheduler_task})
            nodes, instances = _task_result(scheduler_task), _task_result(listing)
        finally:
            scheduler_task.cancel()
        if not isinstance(instances, CachedRows):
            if not isinstance(nodes, Snapshot):
                assert nodes is not None, "both were waited for"
                raise _both_failed(nodes, instances) from None
            notes += [*_unlisted_notes(instances), *notes_of(nodes.value)]
            loading = instances is None
            rows = [JoinedNode(None, node) for node in nodes.value]
            return NodeList(rows, nodes.as_of, nodes.problem, loading, notes=tuple(notes), partial=True)
        if not isinstance(nodes, Snapshot):
            notes.append(
                f"the scheduler of {configured} has not answered yet"
                if nodes is None
                else f"the scheduler of {configured} does not answer: {_error_text(nodes)}"
            )
            return replace(_aws_rows(instances, notes, loading=nodes is None), partial=True)
        cluster, more_notes = await self.describe_hyperpod(resolved.hyperpod, resolved.region)
        notes += [*more_notes, *_unlisted_notes(instances.problem, "all"), *notes_of(nodes.value)]
        rows = await asyncio.to_thread(self._join, configured, cluster, instances, nodes.value)
        return NodeList(
            rows, nodes.as_of, nodes.problem, instances.loading, any(map(is_changing, instances.rows)), tuple(notes)
        )

    def _join(
        self, configured: str, cluster: HyperpodCluster, instances: CachedRows[Instance], nodes: Sequence[Node]
    ) -> list[JoinedNode]:
        """The rows of the table. May be slow."""
        if not nodes and notes_of(nodes):  # hidden from this user; the scheduler may still have them
            return [JoinedNode(instance, None) for instance in instances.rows]
        roles = {group.name: group.slurm_role or "" for group in cluster.groups or ()}
        scheduler = self._engines.get(configured).scheduler
        joined = join_nodes(scheduler, instances.rows, nodes, roles)
        # Until all instances are listed, it is unknown which nodes have none: drop the remark.
        is_complete = not instances.loading and instances.problem is None
        return [row if is_complete or row.instance is not None else JoinedNode(None, row.node) for row in joined]

    async def describe_hyperpod(self, cluster: str, region: str | None) -> tuple[HyperpodCluster, list[str]]:
        """A HyperPod cluster with all known details, and a note if AWS could not describe it.

        Raises:
            NotFoundError: It does not exist.
        """
        aws = self._aws_in(region)
        try:
            return await aws.describe(cluster), []
        except NotFoundError:
            raise
        except HyperpodError as error:
            placeholder = aws.with_local_facts(HyperpodCluster(cluster, cluster, region or "", ""))
            return placeholder, [f"AWS does not describe {cluster}: {_error_text(error)}"]

    async def _hyperpod_of(self, name: str, region: str | None) -> tuple[str | None, HyperpodError | None]:
        """The ARN of the HyperPod cluster behind a configured EKS cluster; or why AWS could not find it."""
        aws = self._aws_in(region)
        try:
            cached, _ = await aws.clusters(wait=TIMEOUT_S, reach=False)
        except HyperpodError as error:
            return None, error
        arn = next((cluster.arn for cluster in cached.rows if name in cluster.configured_as), None)
        return arn, cached.problem if arn is None else None

    async def _list_aws(
        self, region: str | None, wait: float | None, *, refresh: bool
    ) -> tuple[CachedRows[HyperpodCluster] | None, HyperpodError | None, tuple[str, ...]]:
        """AWS' clusters, or why they are missing; with notes."""
        listing = self._aws_in(region).clusters(refresh=refresh, wait=wait)
        try:
            async with asyncio.timeout(_AWS_WAIT_S if wait is None else None):
                cached, notes = await listing
        except TimeoutError:
            return None, None, ()
        except HyperpodError as error:
            return None, error, ()
        return cached, None, tuple(notes)

    def _add_aws(self, line: Cluster, aws_clusters: Sequence[HyperpodCluster]) -> Cluster:
        match = next((cluster for cluster in aws_clusters if line.name in cluster.configured_as), None)
        return line if match is None else replace(line, hyperpod=match)

    def _unconfigured_row(self, cluster: HyperpodCluster, region: str | None) -> Cluster:
        """The row of a cluster that only AWS knows."""
        is_name_used = cluster.name in self._settings.clusters
        name = self._aws_in(region).reach_checker.name_for(cluster)
        return Cluster(
            name=cluster.arn if is_name_used else cluster.name,
            orchestrator=cluster.orchestrator or "unknown",
            default=False,
            state=cluster.state,
            reason=cluster.reason,
            nodes=cluster.nodes,
            configured=False,
            configure=configure_command(cluster, name, region),
            hyperpod=cluster,
        )

    async def _read_within(self, name: str, seconds: float) -> Cluster:
        if self._cache.is_fresh(name):  # it arrived after the caller's timeout
            line = await self._cache.get(name, lambda: self.one(name))
        else:
            question = self._cache.start(name, lambda: self.one(name))
            remaining = seconds - self._cache.load_seconds(name)
            await asyncio.wait([question], timeout=max(0.0, remaining))
            if not question.done():
                elapsed = self._cache.load_seconds(name)
                return self._unreachable_row(name, f"it has not answered for {elapsed:.0f} s")
            line = question.result()
        self._cache.forget(name)  # reported once
        return line

    def _unreachable_row(self, name: str, reason: str) -> Cluster:
        """A cluster that does not answer, with the data of its last answer."""
        kind = self._settings.clusters[name].orchestrator
        placeholder = Cluster(name, kind, name == self._settings.default_cluster, "unreachable")
        return replace(self._last_rows.get(name, placeholder), state="unreachable", reason=reason)


def _actions_of(engine: Orchestrator) -> tuple[str, ...]:
    """The actions that the cluster supports on runs and jobs."""
    offered = engine.actions.supported if engine.actions is not None else ()
    return (*offered, "shells") if engine.shells is not None else tuple(offered)


def _task_result(task: asyncio.Task[T]) -> T | HyperpodError | None:
    """A source's answer, or its error; None while it is pending."""
    if not task.done():
        return None
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, HyperpodError):
        return error
    raise error


def _aws_rows(instances: CachedRows[Instance], notes: Sequence[str], *, loading: bool = False) -> NodeList[JoinedNode]:
    rows = [JoinedNode(instance, None) for instance in instances.rows]
    return NodeList(
        rows,
        instances.as_of,
        instances.problem,
        instances.loading or loading,
        any(map(is_changing, instances.rows)),
        tuple(notes),
    )


def _unlisted_notes(problem: HyperpodError | None, scope: str = "the") -> list[str]:
    """A note if AWS could not list the instances."""
    return [] if problem is None else [f"AWS does not list {scope} instances: {_error_text(problem)}"]


def _both_failed(scheduler: HyperpodError, aws: HyperpodError | None) -> HyperpodError:
    """The error when neither source answers: the scheduler's, with a mention of AWS."""
    if aws is None:
        return scheduler
    return type(scheduler)(
        f"{scheduler.message}; AWS does not list the instances either: {_error_text(aws)}",
        code=scheduler.code,
        hint=scheduler.hint,
        detail=scheduler.detail,
    )


def _error_text(error: HyperpodError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
