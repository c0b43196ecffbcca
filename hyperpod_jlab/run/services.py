"""The services over one configuration, each imported and made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperpod_jlab.clusters.aws import HyperpodClusters
    from hyperpod_jlab.clusters.cache import HyperpodWatch
    from hyperpod_jlab.clusters.lines import ClusterLines
    from hyperpod_jlab.clusters.reach import Reaches
    from hyperpod_jlab.core.cluster import Cluster, Job, Node, Queue
    from hyperpod_jlab.core.config import Settings
    from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
    from hyperpod_jlab.engines.registry import Engines
    from hyperpod_jlab.logs.service import LogService
    from hyperpod_jlab.run.jobs import JobLinks
    from hyperpod_jlab.run.repairs import AwsRepairs
    from hyperpod_jlab.run.service import Runs
    from hyperpod_jlab.run.submit import Submitter


T = TypeVar("T")


@runtime_checkable
class Closing(Protocol):
    """What is to be closed at the end."""

    async def close(self) -> None: ...


@runtime_checkable
class Forgetting(Protocol):
    """What keeps something of clusters."""

    def forget(self, cluster: str) -> None: ...


class Hyperpod:
    """The services of one process. A command pays only for those that it names.

    Args:
        settings: The configuration; default: the user's.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        from hyperpod_jlab.clusters.configuration import find_partition, load_settings

        self.settings = settings if settings is not None else load_settings()
        self.partition = find_partition(self.settings)
        self._watches: dict[str | None, HyperpodWatch] = {}
        self._links: dict[str, JobLinks] = {}
        self._kept: dict[tuple[type, Hashable], object] = {}

    @cached_property
    def engines(self) -> Engines:
        """The engines of the clusters."""
        from hyperpod_jlab.engines.registry import Engines

        return Engines(self.settings, self.partition)

    @cached_property
    def runs(self) -> Runs:
        """The runs on the partition."""
        from hyperpod_jlab.run.service import Runs

        return Runs(self.engines, repairs=self._repairs)

    @cached_property
    def logs(self) -> LogService:
        """The logs of runs."""
        from hyperpod_jlab.logs.service import LogService
        from hyperpod_jlab.run.service import RunLogsOf

        known = RunLogsOf(self.runs)
        return LogService(
            known,
            reasons=known.attempt_reason,
            catch_up=known.catch_up,
        )

    @cached_property
    def submitter(self) -> Submitter:
        """Submits runs."""
        from hyperpod_jlab.run.submit import Submitter

        return Submitter(self.engines, lambda: self.runs)

    @cached_property
    def lines(self) -> ClusterLines:
        """The configured clusters, in a line each."""
        from hyperpod_jlab.clusters.lines import ClusterLines

        return ClusterLines(self.settings, self.engines)

    @cached_property
    def _repairs(self) -> AwsRepairs:
        from hyperpod_jlab.run.repairs import AwsRepairs

        return AwsRepairs(self.settings, self.watch_in)

    def hyperpod_clusters(self, region: str | None = None) -> HyperpodClusters:
        """The HyperPod clusters of the AWS account, whether configured or not.

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        from hyperpod_jlab.aws.session import Aws
        from hyperpod_jlab.clusters.aws import HyperpodClusters

        return HyperpodClusters(self.settings, Aws(region))

    def reaches(self, region: str | None = None) -> Reaches:
        """Whether one can submit to HyperPod clusters from here (see `services.reach`).

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        from hyperpod_jlab.aws.session import Aws
        from hyperpod_jlab.clusters.reach import Reaches

        return Reaches(self.settings, Aws(region))

    def watch_in(self, region: str | None) -> HyperpodWatch:
        """What AWS tells of the HyperPod clusters of a region, kept for all who look.

        Args:
            region: The region; None: see `aws.session.Aws`.
        """
        if region not in self._watches:
            from hyperpod_jlab.clusters.cache import HyperpodWatch

            self._watches[region] = HyperpodWatch(self.hyperpod_clusters(region))
        return self._watches[region]

    def kept(self, kind: type[T], key: Hashable, make: Callable[[], T]) -> T:
        """What a feature keeps as long as these services live, made when first asked for; it is closed with them.

        Args:
            kind: Its class.
            key: Which of that class, such as a region.
            make: Makes it.
        """
        found = self._kept.get((kind, key))
        if not isinstance(found, kind):
            found = self._kept[kind, key] = make()
        return found

    def forget(self, region: str | None, cluster: str) -> None:
        """Something was done to a HyperPod cluster: what is kept of it is asked of AWS anew."""
        self.watch_in(region).forget(cluster)
        for (_, key), kept in self._kept.items():
            if key == region and isinstance(kept, Forgetting):
                kept.forget(cluster)

    async def clusters(self, seconds: float | None = None) -> list[Cluster]:
        """The configured clusters; one that does not answer says why in its reason, and has the numbers of when it last did.

        Args:
            seconds: How long to wait for each of them; default: some seconds (see `cluster_lines.ClusterLines.every`).
        """
        return await self.lines.every(seconds)

    async def cluster(self, name: str) -> Cluster:
        """One configured cluster, as in `clusters`, however long it takes."""
        return await self.lines.one(name)

    async def nodes(self, cluster: str | None = None) -> list[Node]:
        """The nodes of one cluster."""
        from hyperpod_jlab.engines.protocol import tables_of

        return await tables_of(self.engines.get(cluster)).nodes()

    async def queues(self, cluster: str | None = None) -> list[Queue]:
        """The queues of one cluster."""
        from hyperpod_jlab.engines.protocol import tables_of

        return await tables_of(self.engines.get(cluster)).queues()

    async def jobs(self, cluster: str | None = None) -> list[Job]:
        """The queue of all users of one cluster; jobs are linked to the runs that are here."""
        from hyperpod_jlab.engines.protocol import tables_of
        from hyperpod_jlab.run.jobs import JobLinks

        engine = self.engines.get(cluster)
        links = self._links.setdefault(engine.name, JobLinks(self.partition))
        return await links.linked(await tables_of(engine).jobs())

    async def act_on_jobs(
        self,
        cluster: str | None,
        action: ActionKind,
        jobs: Sequence[str],
        change: Change | None = None,
    ) -> list[JobResult]:
        """Do something to jobs of one cluster's queue (see `job_actions.act_on_jobs`)."""
        from hyperpod_jlab.run.jobs import act_on_jobs

        return await act_on_jobs(self.engines, self.runs, cluster, action, jobs, change)

    async def adopt(self, job: str, cluster: str | None = None, name: str | None = None) -> str:
        """Take a job that was sent elsewhere into the list of runs; returns the run's id (see `services.adoption`)."""
        from hyperpod_jlab.run.jobs import adopt

        return await adopt(self.engines, job, cluster, name)

    async def close(self) -> None:
        """Give back what is held open."""
        made = self.__dict__  # what was never asked for was never made
        for name in ("logs", "lines", "_repairs"):
            if name in made:
                await made[name].close()
        for watch in self._watches.values():
            await watch.close()
        for kept in self._kept.values():
            if isinstance(kept, Closing):
                await kept.close()
        if "engines" in made:
            await self.engines.close()
