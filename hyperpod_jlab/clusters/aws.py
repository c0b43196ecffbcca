"""The HyperPod clusters of the AWS account: a shared cache with the age of each answer; AWS is not polled while there are no clients."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances, list_tags
from hyperpod_jlab.aws.errors import no_credentials
from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.aws.studio import points_to_aws
from hyperpod_jlab.clusters.reach import ReachChecker
from hyperpod_jlab.core.cache import FRESH_S, CachedRows, RowCache, RowLoad
from hyperpod_jlab.core.cluster import Rows
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, nearest
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.core.nodes import ReplacementTracker, is_changing

T = TypeVar("T")

_CONCURRENCY = 8
"""Descriptions that are read concurrently."""

_DESCRIPTIONS_PER_REFRESH = 20
"""Descriptions that each refresh of the list reads again, oldest first, so that the cost does not grow with the number of clusters."""

CHANGING_TTL_S = 10.0
"""TTL of the instances, in seconds, while some of them are added or removed."""

_FATAL_CODES = frozenset(
    {
        "aws_throttled",
        "aws_unreachable",
        "clock_skew",
        "expired_aws_credentials",
        "invalid_aws_credentials",
        "no_aws_credentials",
    }
)
"""Error codes that mean the same failure for every cluster."""

_LIST_KEY = "clusters"


@dataclass(frozen=True)
class _Description:
    """The description of a cluster, or why reading it failed.

    Attributes:
        cluster: The cluster; None when reading it failed.
        at: When it was requested (Unix seconds).
        status: The cluster's state in AWS' list at that time.
        problem: Why reading it failed.
    """

    cluster: HyperpodCluster | None
    at: float
    status: str
    problem: HyperpodError | None = None


class HyperpodClusters:
    """The HyperPod clusters of one region.

    All callers share one cache. A slow answer arrives in parts: `CachedRows.loading` says that more is coming, and `wait` is how many seconds to wait for all
    of it.

    Args:
        settings: The configuration.
        aws: AWS in that region.
        mounts: The mounted Lustre file systems; default: this machine's current mounts.
    """

    def __init__(self, settings: Settings, aws: Aws | None = None, mounts: Sequence[LustreMount] | None = None) -> None:
        self.settings = settings
        self.aws = aws or Aws()
        self.mounts = mounts
        self._cache = RowCache()
        self._descriptions: dict[str, _Description] = {}
        self._trackers: dict[str, ReplacementTracker] = {}

    @cached_property
    def reach_checker(self) -> ReachChecker:
        """Checks whether you can submit to the clusters from this machine."""
        return ReachChecker(self.settings, self.aws, self.mounts)

    async def clusters(
        self, *, refresh: bool = False, wait: float | None = None, reach: bool = True
    ) -> tuple[CachedRows[HyperpodCluster], list[str]]:
        """All clusters, and notes on the table. Rows first have the fields of the list; descriptions and reachability follow.

        Args:
            refresh: Query AWS now, even if nothing on this machine points to an account.
            wait: Seconds to wait for everything; default: only for the list.
            reach: Also check whether you can submit to them from this machine.

        Raises:
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        if not refresh and not await asyncio.to_thread(self.points_to_aws):
            raise no_credentials()
        cached: CachedRows[HyperpodCluster] = await self._cache.get(
            _LIST_KEY, lambda load: self._read_clusters(load, refresh_all=refresh), refresh=refresh, wait=wait
        )
        problems = [
            description.problem
            for row in cached.rows
            if (description := self._descriptions.get(row.arn)) is not None and description.problem is not None
        ]
        if reach:
            cached = await self._with_reach(cached, wait, refresh=refresh and not cached.loading)
        return cached, undescribed_notes(problems, len(cached.rows))

    async def cluster(
        self, name: str, *, refresh: bool = False, wait: float | None = None
    ) -> CachedRows[HyperpodCluster]:
        """One cluster, by its name or ARN: a list with one row.

        Args:
            name: The cluster.
            refresh: Query AWS now.
            wait: Seconds to wait for the reachability check; default: none.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        cached: CachedRows[HyperpodCluster] = await self._cache.get(
            ("cluster", name), lambda load: self._read_cluster(load, name), refresh=refresh
        )
        return await self._with_reach(cached, wait, refresh=refresh)

    async def all_clusters(self) -> Rows[HyperpodCluster]:
        """All clusters, without a timeout and without the reachability check. A cluster that AWS cannot describe gives the reason in its row.

        Raises:
            HyperpodError: Listing them failed (see `aws.errors`).
        """
        cached, notes = await self.clusters(refresh=True, wait=float("inf"), reach=False)
        if cached.problem is not None:
            notes.append(f"AWS does not describe all clusters: {cached.problem.message}")
        return Rows(cached.rows, notes)

    async def describe(self, name: str) -> HyperpodCluster:
        """One cluster as AWS describes it.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        return (await self.cluster(name)).rows[0]

    async def all_instances(self, name: str) -> list[Instance]:
        """All instances of a cluster, without a timeout.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: Listing them failed (see `aws.errors`).
        """
        cached = await self.instances(name, wait=float("inf"))
        if cached.problem is not None:
            raise cached.problem
        return cached.rows

    async def tags(self, arn: str, *, refresh: bool = False) -> CachedRows[tuple[str, str]]:
        """The tags of a cluster: names and values.

        Raises:
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        return await self._cache.get(("tags", arn), lambda load: self._read_tags(load, arn), refresh=refresh)

    async def read_for_cluster(
        self, topic: str, name: str, read: Callable[[Aws, HyperpodCluster], Awaitable[T]], *, refresh: bool = False
    ) -> CachedRows[T]:
        """Data that a feature reads for one cluster, by the cluster's name or ARN: a list with one entry.

        Args:
            topic: The feature's cache key.
            name: The cluster.
            read: Reads the data from AWS.
            refresh: Read it now, even if it is cached.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: `read` failed and nothing is cached.
        """

        async def load(row_load: RowLoad[T]) -> None:
            await row_load.put({name: await read(self.aws, await self.describe(name))})

        return await self._cache.get((topic, name), load, refresh=refresh)

    async def instances(self, name: str, *, refresh: bool = False, wait: float | None = None) -> CachedRows[Instance]:
        """The instances of a cluster, by its name or ARN: the first page at once, the others as they arrive.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        key = ("instances", name)
        ttl = CHANGING_TTL_S if any(map(is_changing, self._cache.last(key))) else FRESH_S
        cached: CachedRows[Instance] = await self._cache.get(
            key, lambda load: self._read_instances(load, name), refresh=refresh, fresh=ttl, wait=wait
        )
        tracker = self._trackers.get(name)
        return replace(cached, rows=tracker.with_replacements(cached.rows, time.time())) if tracker else cached

    def known_instances(self, name: str) -> list[Instance]:
        """The cached instances, without a request to AWS; empty if nothing is cached."""
        return self._cache.last(("instances", name))

    def with_local_facts(self, cluster: HyperpodCluster) -> HyperpodCluster:
        """The same cluster with this machine's facts: its names in the configuration, and where its file systems are mounted."""
        mounts = lustre_mounts() if self.mounts is None else self.mounts
        return replace(
            cluster, configured_as=configured_as(self.settings, cluster), mounted_here=mounted_here(cluster, mounts)
        )

    def forget(self, name: str) -> None:
        """Invalidate the cache after a change to a cluster; the next read queries AWS.

        Args:
            name: Its name or ARN, as it was requested.
        """
        self._cache.forget(_LIST_KEY)
        for kind in ("cluster", "instances"):
            self._cache.forget((kind, name))

    async def close(self) -> None:
        """Cancel the requests in flight."""
        await self._cache.close()
        if "reaches" in self.__dict__:
            await self.reach_checker.close()

    async def _with_reach(
        self, cached: CachedRows[HyperpodCluster], wait: float | None, *, refresh: bool
    ) -> CachedRows[HyperpodCluster]:
        """The clusters with the known results of the reachability check."""
        check_tasks = self.reach_checker.start_checks(cached.rows, refresh=refresh)
        if check_tasks and wait is not None:
            await asyncio.wait(check_tasks, timeout=wait)
            check_tasks = [task for task in check_tasks if not task.done()]
        # Without a description there is nothing to check.
        describe = [task for task in cached.rows if task.groups is not None or task.arn in self._descriptions]
        by_arn = {task.arn: task for task in self.reach_checker.with_cached_reach(describe)}
        rows = [by_arn.get(task.arn, task) for task in cached.rows]
        return replace(cached, rows=rows, loading=cached.loading or bool(check_tasks))

    def points_to_aws(self) -> bool:
        """Whether the configuration or the machine points to an AWS account; may read files."""
        clusters = self.settings.clusters.values()
        return any(cluster.at_aws for cluster in clusters) or points_to_aws()

    async def _read_clusters(self, load: RowLoad[HyperpodCluster], *, refresh_all: bool) -> None:
        by_arn: dict[str, HyperpodCluster] = {}
        async for page in list_clusters(self.aws):
            by_arn |= {cluster.arn: cluster for cluster in page}
            await load.put({cluster.arn: self._row(cluster) for cluster in page})
        load.end_of_list()
        for arn in self._descriptions.keys() - by_arn.keys():
            del self._descriptions[arn]
        await self._describe(load, by_arn, self._due_for_description(by_arn.values(), refresh_all))

    def _due_for_description(self, clusters: Iterable[HyperpodCluster], refresh_all: bool) -> list[HyperpodCluster]:
        """The clusters to describe next: new ones, those whose state changed, and the oldest descriptions."""
        urgent, outdated = [], []
        for cluster in clusters:
            description = self._descriptions.get(cluster.arn)
            if refresh_all or description is None or description.status != cluster.status:
                urgent.append(cluster)
            elif time.time() - description.at > FRESH_S / 2:
                outdated.append((description.at, cluster))
        outdated.sort(key=lambda pair: pair[0])
        return [*urgent, *(cluster for _, cluster in outdated[: max(0, _DESCRIPTIONS_PER_REFRESH - len(urgent))])]

    async def _describe(
        self, load: RowLoad[HyperpodCluster], by_arn: dict[str, HyperpodCluster], due_clusters: list[HyperpodCluster]
    ) -> None:
        """Read descriptions concurrently.

        Raises:
            HyperpodError: One of `_FATAL_CODES`; the remaining clusters were not read.
        """
        semaphore = asyncio.Semaphore(_CONCURRENCY)
        failures: list[HyperpodError] = []

        async def describe_one(summary: HyperpodCluster) -> None:
            async with semaphore:
                await load.wait_for_clients()
                if failures:
                    return
                try:
                    self._descriptions[summary.arn] = await self._description(summary)
                except NotFoundError:  # deleted since it was listed
                    load.items.pop(summary.arn, None)
                except HyperpodError as error:
                    failures.append(error)
                else:
                    load.items[summary.arn] = self._row(by_arn[summary.arn])

        await asyncio.gather(*map(describe_one, due_clusters))
        if failures:
            raise failures[0]

    async def _description(self, summary: HyperpodCluster) -> _Description:
        read_at = time.time()
        try:
            cluster = await describe_cluster(self.aws, summary)
        except NotFoundError:
            raise
        except HyperpodError as error:
            if error.code in _FATAL_CODES:
                raise
            return _Description(None, read_at, summary.status, error)
        return _Description(cluster, read_at, summary.status)

    def _row(self, summary: HyperpodCluster) -> HyperpodCluster:
        """A row of the list, completed from the cached description."""
        description = self._descriptions.get(summary.arn)
        if description is None:
            return self.with_local_facts(summary)
        if description.cluster is None:
            reason = description.problem.message if description.problem else None
            return self.with_local_facts(replace(summary, reason=reason))
        return self.with_local_facts(
            replace(
                description.cluster,
                status=summary.status,
                image_status=summary.image_status,
                described_at=description.at,
            )
        )

    async def _read_cluster(self, load: RowLoad[HyperpodCluster], name: str) -> None:
        read_at = time.time()
        try:
            summary = await find_cluster(self.aws, name)
        except NotFoundError as error:
            suggestion = nearest(name, self.settings.clusters)
            hint = f"did you mean '{suggestion}'?" if suggestion is not None else error.hint
            raise NotFoundError(error.message, code=error.code, hint=hint, detail=error.detail) from None
        listed_rows = [row for row in self._cache.last(_LIST_KEY) if row.arn == summary.arn]
        image_status = listed_rows[0].image_status if listed_rows else None
        summary = replace(summary, image_status=image_status, described_at=read_at)
        await load.put({summary.arn: self.with_local_facts(summary)})

    async def _read_tags(self, load: RowLoad[tuple[str, str]], arn: str) -> None:
        tags = await list_tags(self.aws, arn)
        await load.put(dict(_by_name(tags)))

    async def _read_instances(self, load: RowLoad[Instance], name: str) -> None:
        async for page in list_instances(self.aws, name):
            await load.put({instance.name: instance for instance in page})
        self._trackers.setdefault(name, ReplacementTracker()).update(load.items.values())


def _by_name(tags: dict[str, str]) -> Iterable[tuple[Hashable, tuple[str, str]]]:
    return ((name, (name, value)) for name, value in sorted(tags.items()))


def undescribed_notes(problems: Sequence[HyperpodError], total: int) -> list[str]:
    """Notes on clusters that are listed without a description: one sentence per reason.

    Args:
        problems: The reason for each of these clusters.
        total: How many clusters there are.
    """
    hints = {problem.message: problem.hint for problem in problems}
    return [
        f"{count} of {total} clusters could not be described: {message}"
        + (f" ({hints[message]})" if hints[message] else "")
        for message, count in Counter(problem.message for problem in problems).items()
    ]


def configured_as(settings: Settings, cluster: HyperpodCluster) -> tuple[str, ...]:
    """The names of this HyperPod cluster in the configuration.

    A plain name in the configuration means the default region; another region may have a cluster of the same name.
    """
    is_home_region = home_region() in {None, cluster.region}
    names = {cluster.arn, *([cluster.name] if is_home_region else [])}
    return tuple(
        name
        for name, config in settings.clusters.items()
        if config.hyperpod_cluster in names or config.is_eks(cluster.eks_arn, is_same_region=is_home_region)
    )


def mounted_here(cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> tuple[str, ...] | None:
    """Where the cluster's file systems are mounted on this machine; None if AWS lists no file systems for the cluster."""
    storage = cluster.storage
    if not storage:
        return None
    return tuple(
        str(mount.point) for mount in mounts if any(is_mount_of(mount, file_system) for file_system in storage)
    )


# --------------------------------------------------------------------------------------------------
# Find a HyperPod cluster and its instances by any of their names.


async def find_cluster(aws: Aws, cluster: str) -> HyperpodCluster:
    """A cluster by its name or ARN.

    Raises:
        NotFoundError: It does not exist.
        HyperpodError: See `aws.errors`.
    """
    return await describe_cluster(aws, HyperpodCluster(cluster, cluster, await aws.region(), ""))


def has_name(instance: Instance, node: str) -> bool:
    """Whether the instance has this name: its id, or its name in Kubernetes, Slurm or the private network."""
    host = instance.host or ""
    host_names = {host, host.partition(".")[0]} if host else set()
    return node.removeprefix("hyperpod-") == instance.name or node in host_names


async def find_instance(aws: Aws, cluster: str, node: str) -> Instance:
    """An instance of a cluster, by the name of the node.

    Args:
        aws: AWS in the cluster's region.
        cluster: Name or ARN of the cluster.
        node: Its instance id, its name in Kubernetes (``hyperpod-i-...``), or its name in the private network, which Slurm shortens to
            its first part.

    Raises:
        NotFoundError: The cluster or the node (``no_such_node``) does not exist.
        HyperpodError: See `aws.errors`.
    """
    async for page in list_instances(aws, cluster):
        for instance in page:
            if has_name(instance, node):
                return instance
    raise NotFoundError(
        f"the cluster {cluster} has no node {node}",
        code="no_such_node",
        hint=f"list nodes with: hpj nodes {cluster}",
        detail={"field": "node"},
    )
