"""The services for one configuration, each imported and created on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperpod_jlab.capture.isolated import Isolated
    from hyperpod_jlab.clusters.aws import HyperpodClusters
    from hyperpod_jlab.clusters.service import Clusters
    from hyperpod_jlab.core.cache import Snapshots
    from hyperpod_jlab.core.cluster import Job, Node, Queue, Rows
    from hyperpod_jlab.core.config import Settings
    from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.engines.protocol import NativeFacts
    from hyperpod_jlab.engines.registry import Engines
    from hyperpod_jlab.logs.service import LogService
    from hyperpod_jlab.run.cost import Estimate
    from hyperpod_jlab.run.job_log import JobLog
    from hyperpod_jlab.run.jobs import JobLinks
    from hyperpod_jlab.run.metrics import MetricsCache
    from hyperpod_jlab.run.repairs import AwsRepairs
    from hyperpod_jlab.run.service import Runs
    from hyperpod_jlab.run.submit import Submitter
    from hyperpod_jlab.storage.big_records import BigReads


T = TypeVar("T")


@runtime_checkable
class AsyncClosable(Protocol):
    """Closed at shutdown."""

    async def close(self) -> None: ...


@runtime_checkable
class Invalidatable(Protocol):
    """Has a cache of clusters."""

    def forget(self, cluster: str) -> None: ...


class Hyperpod:
    """The services of one process, created lazily: a command loads only those that it uses.

    Args:
        settings: The configuration; default: the user's.
        isolate: Whether code is captured in a process of its own, so that it cannot stop this one.
    """

    def __init__(self, settings: Settings | None = None, *, isolate: bool = False) -> None:
        from hyperpod_jlab.clusters.configuration import find_partition, load_settings

        self.settings = settings if settings is not None else load_settings()
        self.partition = find_partition(self.settings)
        self._isolate = isolate
        self._clusters_by_region: dict[str | None, HyperpodClusters] = {}
        self._links: dict[str, JobLinks] = {}
        self._services: dict[tuple[type, Hashable], object] = {}

    @cached_property
    def engines(self) -> Engines:
        from hyperpod_jlab.engines.registry import Engines

        return Engines(self.settings, self.partition)

    @cached_property
    def runs(self) -> Runs:
        from hyperpod_jlab.run.service import Runs

        return Runs(self.engines, repairs=self._repairs)

    @cached_property
    def logs(self) -> LogService:
        from hyperpod_jlab.logs.service import LogService
        from hyperpod_jlab.run.service import RunLogAdapter

        log_adapter = RunLogAdapter(self.runs)
        return LogService(log_adapter, reasons=log_adapter.attempt_reasons, catch_up=log_adapter.catch_up)

    @cached_property
    def metrics(self) -> MetricsCache:
        """What the ranks of runs print: numbers, progress, alarms."""
        from hyperpod_jlab.run.metrics import MetricsCache

        return MetricsCache(self.runs.bundle)

    @cached_property
    def big_reads(self) -> BigReads:
        """Reads large records of runs, a few at once."""
        from hyperpod_jlab.storage.big_records import BigReads

        return BigReads()

    @cached_property
    def submitter(self) -> Submitter:
        """Submits runs."""
        from hyperpod_jlab.run.submit import Submitter

        async def estimated(spec: JobSpec, cluster: str, time_limit: int | None, facts: NativeFacts | None) -> Estimate:
            from hyperpod_jlab.run.cost import estimate

            return await estimate(self, spec, cluster, time_limit, facts)

        isolated = self.isolated if self._isolate else None
        return Submitter(self.engines, lambda: self.runs, estimated, isolated)

    @cached_property
    def isolated(self) -> Isolated:
        """Calls functions that read what strangers wrote, in processes of their own."""
        from hyperpod_jlab.capture.isolated import Isolated

        return Isolated()

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters, configured or not."""
        from hyperpod_jlab.clusters.service import Clusters

        return Clusters(self.settings, self.engines, self.hyperpod_clusters)

    @property
    def snapshots(self) -> Snapshots:
        """The cached answers of the clusters."""
        return self.clusters.snapshots

    @cached_property
    def _repairs(self) -> AwsRepairs:
        from hyperpod_jlab.run.repairs import AwsRepairs

        return AwsRepairs(self.settings, self.hyperpod_clusters)

    def hyperpod_clusters(self, region: str | None = None) -> HyperpodClusters:
        """The HyperPod clusters of the AWS account in a region; shared by all callers.

        Args:
            region: The region; None: see `aws.session.Aws`.
        """
        if region not in self._clusters_by_region:
            from hyperpod_jlab.aws.session import Aws
            from hyperpod_jlab.clusters.aws import HyperpodClusters

            self._clusters_by_region[region] = HyperpodClusters(self.settings, Aws(region))
        return self._clusters_by_region[region]

    def get_or_make(self, kind: type[T], key: Hashable, make: Callable[[], T]) -> T:
        """A feature's object with the lifetime of these services: created on first use, closed with them.

        Args:
            kind: Its class.
            key: Which instance of the class, such as a region.
            make: Creates it.
        """
        existing = self._services.get((kind, key))
        if not isinstance(existing, kind):
            existing = self._services[kind, key] = make()
        return existing

    def refresh(self, cluster: str | None = None) -> None:
        """Invalidate what the scheduler of a configured cluster said, or all schedulers: the next read asks again."""
        self.engines.refresh(cluster)
        self.snapshots.forget()

    def forget(self, region: str | None, cluster: str) -> None:
        """Invalidate the cache of a HyperPod cluster after a change."""
        self.hyperpod_clusters(region).forget(cluster)
        for (_, key), service in self._services.items():
            if key == region and isinstance(service, Invalidatable):
                service.forget(cluster)

    async def nodes(self, cluster: str | None = None) -> Rows[Node]:
        """The nodes of one cluster (see `Clusters.nodes`)."""
        from hyperpod_jlab.core.cluster import Rows

        table = await self.clusters.nodes(cluster)
        return Rows(table.nodes, table.notes)

    async def queues(self, cluster: str | None = None) -> list[Queue]:
        """The queues of one cluster."""
        from hyperpod_jlab.engines.protocol import require_tables

        name = self.clusters.configured_name(cluster)
        return await require_tables(self.engines.get(name)).queues()

    async def jobs(self, cluster: str | None = None) -> list[Job]:
        """The queue of one cluster, for all users; jobs are linked to the runs on this partition."""
        from hyperpod_jlab.engines.protocol import require_tables
        from hyperpod_jlab.run.jobs import JobLinks

        engine = self.engines.get(self.clusters.configured_name(cluster))
        links = self._links.setdefault(engine.name, JobLinks(self.partition))
        jobs = await links.linked(await require_tables(engine).jobs())
        if engine.history is None and not engine.scheduler.runs_locally:
            await asyncio.to_thread(self.job_log(engine.name).note, jobs)
        return jobs

    def job_log(self, cluster: str) -> JobLog:
        """The jobs that were seen on a cluster without accounting."""
        from hyperpod_jlab.run.job_log import JobLog

        return self.get_or_make(JobLog, cluster, lambda: JobLog(cluster))

    async def act_on_jobs(
        self, cluster: str | None, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Act on jobs of one cluster's queue (see `job_actions.act_on_jobs`)."""
        from hyperpod_jlab.run.jobs import act_on_jobs

        return await act_on_jobs(self.engines, self.runs, cluster, action, jobs, change)

    async def close(self) -> None:
        """Close all services."""
        created = self.__dict__  # unused services were never created
        for name in ("isolated", "logs", "clusters", "_repairs"):
            if name in created:
                await created[name].close()
        for cached_clusters in self._clusters_by_region.values():
            await cached_clusters.close()
        for service in self._services.values():
            if isinstance(service, AsyncClosable):
                await service.close()
        if "engines" in created:
            await self.engines.close()
