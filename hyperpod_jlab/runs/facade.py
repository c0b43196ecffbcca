"""The services over one configuration, each imported and made when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from hyperpod_jlab.core.errors import HyperpodError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperpod_jlab.clusters.aws import HyperpodClusters
    from hyperpod_jlab.clusters.cache import HyperpodWatch
    from hyperpod_jlab.clusters.lines import ClusterLines
    from hyperpod_jlab.clusters.reach import Reaches
    from hyperpod_jlab.core.cluster import Change, Cluster, Job, JobResult, Node, Queue
    from hyperpod_jlab.core.config import Settings
    from hyperpod_jlab.core.records import ActionKind
    from hyperpod_jlab.engines.protocol import PortStream
    from hyperpod_jlab.engines.registry import Engines
    from hyperpod_jlab.features.events.service import EventWatch, HyperpodEvents
    from hyperpod_jlab.features.governance.models import Governance
    from hyperpod_jlab.features.metrics.service import NodeMetrics, RunMetrics
    from hyperpod_jlab.features.node_actions.service import NodeActions
    from hyperpod_jlab.features.ports.service import Access
    from hyperpod_jlab.features.storage.files import RepositoryTasks
    from hyperpod_jlab.features.storage.service import Storage
    from hyperpod_jlab.logs.service import LogService
    from hyperpod_jlab.runs.jobs import JobLinks
    from hyperpod_jlab.runs.repairs import AwsRepairs
    from hyperpod_jlab.runs.service import Runs
    from hyperpod_jlab.runs.submit import Submitter


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
        self._event_watches: dict[str | None, EventWatch] = {}
        self._links: dict[str, JobLinks] = {}
        self._metrics: dict[str | None, NodeMetrics] = {}

    @cached_property
    def engines(self) -> Engines:
        """The engines of the clusters."""
        from hyperpod_jlab.engines.registry import Engines

        return Engines(self.settings, self.partition)

    @cached_property
    def runs(self) -> Runs:
        """The runs on the partition."""
        from hyperpod_jlab.runs.service import Runs

        return Runs(self.engines, repairs=self._repairs)

    @cached_property
    def logs(self) -> LogService:
        """The logs of runs."""
        from hyperpod_jlab.logs.service import LogService
        from hyperpod_jlab.runs.service import RunLogsOf

        known = RunLogsOf(self.runs)
        return LogService(
            known,
            elsewhere=known.array_streams,
            reasons=known.attempt_reason,
            catch_up=known.catch_up,
        )

    @cached_property
    def submitter(self) -> Submitter:
        """Submits runs."""
        from hyperpod_jlab.runs.submit import Submitter

        return Submitter(self.engines, lambda: self.runs)

    @cached_property
    def lines(self) -> ClusterLines:
        """The configured clusters, in a line each."""
        from hyperpod_jlab.clusters.lines import ClusterLines

        return ClusterLines(self.settings, self.engines)

    @cached_property
    def _repairs(self) -> AwsRepairs:
        from hyperpod_jlab.runs.repairs import AwsRepairs

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

    def event_watch_in(self, region: str | None) -> EventWatch:
        """The same of their events, with the journal."""
        if region not in self._event_watches:
            from hyperpod_jlab.features.events.service import EventWatch

            events = self.hyperpod_events(region)
            self._event_watches[region] = EventWatch(self.watch_in(region), events)
        return self._event_watches[region]

    def hyperpod_events(self, region: str | None = None) -> HyperpodEvents:
        """The events of HyperPod clusters.

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        from hyperpod_jlab.aws.session import Aws
        from hyperpod_jlab.features.events.service import HyperpodEvents

        return HyperpodEvents(Aws(region))

    def node_actions(self, region: str | None = None) -> NodeActions:
        """What can be done to nodes (see `services.node_actions`).

        Args:
            region: The region of their HyperPod cluster; default: see `aws.session.Aws`.
        """
        from hyperpod_jlab.features.node_actions.service import NodeActions

        return NodeActions(self.engines, self.hyperpod_clusters(region))

    def node_metrics(self, region: str | None = None) -> NodeMetrics:
        """The metrics of HyperPod clusters and of their nodes.

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        if region not in self._metrics:
            from hyperpod_jlab.aws.session import Aws
            from hyperpod_jlab.features.metrics.service import NodeMetrics

            self._metrics[region] = NodeMetrics(Aws(region), self.settings)
        return self._metrics[region]

    def run_metrics(self, region: str | None = None) -> RunMetrics:
        """The metrics of runs.

        Args:
            region: The region of clusters that the configuration has by a plain name; default: see `aws.session.Aws`.
        """
        from hyperpod_jlab.features.metrics.service import RunMetrics

        return RunMetrics(lambda own: self.node_metrics(own or region), self.runs, self.settings)

    def storage(self, *, ask_aws: bool = True) -> Storage:
        """The file systems and partitions of this machine.

        Args:
            ask_aws: Whether AWS is asked what it knows of them, where they come from there.
        """
        from hyperpod_jlab.aws.session import Aws
        from hyperpod_jlab.features.storage.service import Storage

        return Storage(self.settings, self.partition, self.engines, Aws() if ask_aws else None)

    def repository_tasks(self, region: str | None = None) -> RepositoryTasks:
        """What AWS does to files of file systems that are linked to S3 (see `services.repository_tasks`).

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        from hyperpod_jlab.aws.session import Aws
        from hyperpod_jlab.features.storage.files import RepositoryTasks

        return RepositoryTasks(Aws(region))

    async def clusters(self, seconds: float | None = None) -> list[Cluster]:
        """The configured clusters; one that does not answer says why in its reason, and has the numbers of when it last did.

        Args:
            seconds: How long to wait for each of them; default: some seconds (see `cluster_lines.ClusterLines.every`).
        """
        return await self.lines.every(seconds)

    async def cluster(self, name: str) -> Cluster:
        """One configured cluster, as in `clusters`, however long it takes."""
        return await self.lines.one(name)

    async def governance(self, cluster: str, region: str | None = None) -> Governance:
        """The task governance of a HyperPod cluster on EKS, with what of it is in use where the configuration has the cluster.

        Args:
            cluster: Its name or ARN.
            region: Its region; default: see `aws.session.Aws`.

        Raises:
            UnsupportedError: It is no cluster on EKS.
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        from hyperpod_jlab.features.governance.service import joined, queues_of, read_governance

        service = self.hyperpod_clusters(region)
        found = await service.cluster(cluster)
        told = await read_governance(service.aws, found)
        if not found.configured_as:
            return joined(told, None)
        try:
            return joined(told, await queues_of(self.engines, found))
        except HyperpodError as error:
            return joined(told, error)

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
        from hyperpod_jlab.runs.jobs import JobLinks

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
        from hyperpod_jlab.runs.jobs import act_on_jobs

        return await act_on_jobs(self.engines, self.runs, cluster, action, jobs, change)

    async def adopt(self, job: str, cluster: str | None = None, name: str | None = None) -> str:
        """Take a job that was sent elsewhere into the list of runs; returns the run's id (see `services.adoption`)."""
        from hyperpod_jlab.runs.jobs import adopt

        return await adopt(self.engines, job, cluster, name)

    async def access(self, run_id: str) -> Access:
        """What of a run's nodes can be reached now (see `services.access`)."""
        from hyperpod_jlab.features.ports.service import access_of

        return await access_of(self.engines, self.runs, run_id)

    async def open_port(self, run_id: str, node: int, port: int) -> PortStream:
        """Connect to a port of a running run's node (see `services.access.open_port`)."""
        from hyperpod_jlab.features.ports.service import open_port

        return await open_port(self.engines, self.runs, run_id, node, port)

    async def close(self) -> None:
        """Give back what is held open."""
        made = self.__dict__  # what was never asked for was never made
        for name in ("logs", "lines", "_repairs"):
            if name in made:
                await made[name].close()
        for watch in self._watches.values():
            await watch.close()
        for events in self._event_watches.values():
            await events.close()
        if "engines" in made:
            await self.engines.close()
