"""All services over one configuration: what a face holds on to."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.clusters.cache import HyperpodWatch
from hyperpod_jlab.clusters.configuration import find_partition, load_settings
from hyperpod_jlab.clusters.lines import PATIENCE, ClusterLines
from hyperpod_jlab.clusters.reach import Reaches
from hyperpod_jlab.core.cluster import Change, Cluster, Job, JobResult, Node, Queue
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import ActionKind
from hyperpod_jlab.engines.protocol import PortStream
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.features.events.service import EventWatch, HyperpodEvents
from hyperpod_jlab.features.governance.models import Governance
from hyperpod_jlab.features.governance.service import joined, queues_of, read_governance
from hyperpod_jlab.features.metrics.service import NodeMetrics, RunMetrics
from hyperpod_jlab.features.node_actions.service import NodeActions
from hyperpod_jlab.features.ports.service import Access, access_of, open_port
from hyperpod_jlab.features.storage.files import RepositoryTasks
from hyperpod_jlab.features.storage.service import Storage
from hyperpod_jlab.logs.service import LogService
from hyperpod_jlab.runs.jobs import JobLinks, act_on_jobs
from hyperpod_jlab.runs.repairs import AwsRepairs
from hyperpod_jlab.runs.service import RunLogsOf, Runs
from hyperpod_jlab.runs.submit import Submitter


class Hyperpod:
    """The services of one process."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings if settings is not None else load_settings()
        self.partition = find_partition(self.settings)
        self.engines = Engines(self.settings, self.partition)
        self._watches: dict[str | None, HyperpodWatch] = {}
        self._event_watches: dict[str | None, EventWatch] = {}
        self.watch = self.watch_in(None)
        """What AWS tells of the region that is found where nobody names one."""
        self._repairs = AwsRepairs(self.settings, self.watch_in)
        self.runs = Runs(self.engines, repairs=self._repairs)
        known = RunLogsOf(self.runs)
        self.logs = LogService(
            known,
            elsewhere=known.array_streams,
            reasons=known.attempt_reason,
            catch_up=known.catch_up,
        )
        self.submitter = Submitter(self.engines, self.runs)
        self._lines = ClusterLines(self.settings, self.engines)
        self._links: dict[str, JobLinks] = {}
        self._metrics: dict[str | None, NodeMetrics] = {}

    async def clusters(self, seconds: float = PATIENCE) -> list[Cluster]:
        """The configured clusters; one that does not answer says why in its reason, and has the numbers of when it last did.

        Args:
            seconds: How long to wait for each of them (see `cluster_lines.ClusterLines.every`).
        """
        return await self._lines.every(seconds)

    async def cluster(self, name: str) -> Cluster:
        """One configured cluster, as in `clusters`, however long it takes."""
        return await self._lines.one(name)

    def hyperpod_clusters(self, region: str | None = None) -> HyperpodClusters:
        """The HyperPod clusters of the AWS account, whether configured or not.

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        return HyperpodClusters(self.settings, Aws(region))

    def reaches(self, region: str | None = None) -> Reaches:
        """Whether one can submit to HyperPod clusters from here (see `services.reach`).

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        return Reaches(self.settings, Aws(region))

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
        service = self.hyperpod_clusters(region)
        found = await service.cluster(cluster)
        told = await read_governance(service.aws, found)
        if not found.configured_as:
            return joined(told, None)
        try:
            return joined(told, await queues_of(self.engines, found))
        except HyperpodError as error:
            return joined(told, error)

    def watch_in(self, region: str | None) -> HyperpodWatch:
        """What AWS tells of the HyperPod clusters of a region, kept for all who look.

        Args:
            region: The region; None: see `aws.session.Aws`.
        """
        if region not in self._watches:
            self._watches[region] = HyperpodWatch(self.hyperpod_clusters(region))
        return self._watches[region]

    def event_watch_in(self, region: str | None) -> EventWatch:
        """The same of their events, with the journal."""
        if region not in self._event_watches:
            events = self.hyperpod_events(region)
            self._event_watches[region] = EventWatch(self.watch_in(region), events)
        return self._event_watches[region]

    def hyperpod_events(self, region: str | None = None) -> HyperpodEvents:
        """The events of HyperPod clusters.

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        return HyperpodEvents(Aws(region))

    def node_actions(self, region: str | None = None) -> NodeActions:
        """What can be done to nodes (see `services.node_actions`).

        Args:
            region: The region of their HyperPod cluster; default: see `aws.session.Aws`.
        """
        return NodeActions(self.engines, self.hyperpod_clusters(region))

    def node_metrics(self, region: str | None = None) -> NodeMetrics:
        """The metrics of HyperPod clusters and of their nodes.

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        if region not in self._metrics:
            self._metrics[region] = NodeMetrics(Aws(region), self.settings)
        return self._metrics[region]

    def run_metrics(self, region: str | None = None) -> RunMetrics:
        """The metrics of runs.

        Args:
            region: The region of clusters that the configuration has by a plain name; default: see `aws.session.Aws`.
        """
        return RunMetrics(lambda own: self.node_metrics(own or region), self.runs, self.settings)

    def storage(self, *, ask_aws: bool = True) -> Storage:
        """The file systems and partitions of this machine.

        Args:
            ask_aws: Whether AWS is asked what it knows of them, where they come from there.
        """
        return Storage(self.settings, self.partition, self.engines, Aws() if ask_aws else None)

    def repository_tasks(self, region: str | None = None) -> RepositoryTasks:
        """What AWS does to files of file systems that are linked to S3 (see `services.file_moves`).

        Args:
            region: Their region; default: see `aws.session.Aws`.
        """
        return RepositoryTasks(Aws(region))

    async def nodes(self, cluster: str | None = None) -> list[Node]:
        """The nodes of one cluster."""
        return await self.engines.get(cluster).nodes()

    async def queues(self, cluster: str | None = None) -> list[Queue]:
        """The queues of one cluster."""
        return await self.engines.get(cluster).queues()

    async def jobs(self, cluster: str | None = None) -> list[Job]:
        """The queue of all users of one cluster; jobs are linked to the runs that are here."""
        engine = self.engines.get(cluster)
        links = self._links.setdefault(engine.name, JobLinks(self.partition))
        return await links.linked(await engine.jobs())

    async def act_on_jobs(
        self,
        cluster: str | None,
        action: ActionKind,
        jobs: Sequence[str],
        change: Change | None = None,
    ) -> list[JobResult]:
        """Do something to jobs of one cluster's queue (see `job_actions.act_on_jobs`)."""
        return await act_on_jobs(self.engines, self.runs, cluster, action, jobs, change)

    async def adopt(self, job: str, cluster: str | None = None, name: str | None = None) -> str:
        """Take a job that was sent elsewhere into the list of runs; returns the run's id (see `services.adoption`)."""
        from hyperpod_jlab.runs.jobs import adopt

        return await adopt(self.engines, job, cluster, name)

    async def access(self, run_id: str) -> Access:
        """What of a run's nodes can be reached now (see `services.access`)."""
        return await access_of(self.engines, self.runs, run_id)

    async def open_port(self, run_id: str, node: int, port: int) -> PortStream:
        """Connect to a port of a running run's node (see `services.access.open_port`)."""
        return await open_port(self.engines, self.runs, run_id, node, port)

    async def close(self) -> None:
        """Give back what is held open."""
        await self.logs.close()
        await self._lines.close()
        await self._repairs.close()
        for watch in self._watches.values():
            await watch.close()
        for events in self._event_watches.values():
            await events.close()
        await self.engines.close()
