"""The HyperPod clusters of the AWS account, and which of them this machine's configuration has."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances
from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.core.cluster import Node, Rows
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance, JoinedNode, Places, join_nodes
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.engines.protocol import tables_of
from hyperpod_jlab.engines.registry import Engines

_AT_ONCE = 8
"""Clusters that are described at the same time: the list has no orchestrator, so each costs a call."""


class HyperpodClusters:
    """HyperPod clusters of one region.

    Args:
        settings: The configuration.
        aws: AWS in that region.
        mounts: The Lustre file systems that are mounted here; default: those of this machine at the time.
    """

    def __init__(
        self,
        settings: Settings,
        aws: Aws | None = None,
        mounts: Sequence[LustreMount] | None = None,
    ) -> None:
        self.settings = settings
        self.aws = aws or Aws()
        self.mounts = mounts

    async def clusters(self) -> Rows[HyperpodCluster]:
        """All clusters. One that cannot be described stays in the list, and says in its reason why.

        Raises:
            HyperpodError: Not even the list could be had (see `aws.errors`).
        """
        room = asyncio.Semaphore(_AT_ONCE)
        found = [one async for page in list_clusters(self.aws) for one in page]
        described = await asyncio.gather(*(self._described(one, room) for one in found))
        rows = [row for row, _ in described if row is not None]
        problems = [problem for _, problem in described if problem is not None]
        return Rows(rows, undescribed(problems, len(found)))

    async def cluster(self, name: str) -> HyperpodCluster:
        """One cluster, by its name or ARN.

        Raises:
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        bare = HyperpodCluster(name, name, await self.aws.region(), "")
        return self.placed(await describe_cluster(self.aws, bare))

    async def instances(self, cluster: str) -> list[Instance]:
        """The instances of a cluster, as AWS knows them.

        Raises:
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        found = [one async for page in list_instances(self.aws, cluster) for one in page]
        places = Places()
        places.note(found)
        return places.told(found, time.time())

    async def nodes(self, cluster: str, engines: Engines) -> Rows[JoinedNode]:
        """The nodes of a cluster: AWS' instances, joined with the scheduler's nodes where the configuration has the cluster.

        Args:
            cluster: Its name or ARN.
            engines: The engines of the configured clusters.

        Raises:
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`. A scheduler that does not answer is no error, but a note.
        """
        found, notes = await self._known(cluster)
        configured = configured_as(self.settings, found)
        if not configured:
            notes.append(
                f"no cluster of the configuration has hyperpod = '{found.name}', so no scheduler was asked"
            )
            rows = [JoinedNode(instance, None) for instance in await self.instances(cluster)]
            return Rows(rows, notes)
        name = configured[0]
        instances, nodes = await asyncio.gather(
            self.instances(cluster), _scheduler_nodes(engines, name)
        )
        if isinstance(nodes, HyperpodError):
            notes.append(f"the scheduler of {name} does not answer: {nodes.message}")
            return Rows([JoinedNode(instance, None) for instance in instances], notes)
        roles = {group.name: group.slurm_role or "" for group in found.groups or ()}
        scheduler = engines.get(name).scheduler
        return Rows(join_nodes(scheduler, instances, nodes, roles), notes)

    def placed(self, cluster: HyperpodCluster) -> HyperpodCluster:
        """The same cluster, with what this machine knows of it: under which names it is configured, and where its files are."""
        mounts = lustre_mounts() if self.mounts is None else self.mounts
        return replace(
            cluster,
            configured_as=configured_as(self.settings, cluster),
            mounted_here=mounted_here(cluster, mounts),
        )

    async def _known(self, cluster: str) -> tuple[HyperpodCluster, list[str]]:
        """What is known of a cluster beyond its name, and a note where that could not be had."""
        bare = HyperpodCluster(cluster, cluster, await self.aws.region(), "")
        try:
            return await describe_cluster(self.aws, bare), []
        except NotFoundError:
            raise
        except HyperpodError as error:
            return bare, [f"{cluster} could not be described: {error.message}"]

    async def _described(
        self, cluster: HyperpodCluster, room: asyncio.Semaphore
    ) -> tuple[HyperpodCluster | None, HyperpodError | None]:
        """The cluster with its description, or without it and why; none at all when it was deleted meanwhile."""
        problem = None
        async with room:
            try:
                cluster = await describe_cluster(self.aws, cluster)
            except NotFoundError:
                return None, None
            except HyperpodError as error:
                problem = error
                cluster = replace(cluster, reason=error.message)
        return self.placed(cluster), problem


async def _scheduler_nodes(engines: Engines, name: str) -> list[Node] | HyperpodError:
    try:
        return await tables_of(engines.get(name)).nodes()
    except HyperpodError as error:
        return error


def undescribed(problems: Sequence[HyperpodError], total: int) -> list[str]:
    """What is to be said of clusters that are listed without their description: a sentence for each reason.

    Args:
        problems: Why; one for each of these clusters.
        total: How many clusters there are.
    """
    hints = {problem.message: problem.hint for problem in problems}
    return [
        f"{count} of {total} clusters could not be described: {words}"
        + (f" ({hints[words]})" if hints[words] else "")
        for words, count in Counter(problem.message for problem in problems).items()
    ]


def configured_as(settings: Settings, cluster: HyperpodCluster) -> tuple[str, ...]:
    """The names of the configuration's clusters that are this HyperPod cluster.

    A plain name in the configuration is one of the region that is found where nobody names one; in others there may be a cluster of the same name.
    """
    at_home = home_region() in {None, cluster.region}
    names = {cluster.arn, *([cluster.name] if at_home else [])}
    return tuple(
        name
        for name, config in settings.clusters.items()
        if config.hyperpod_cluster in names or config.is_eks(cluster.eks_arn, at_home=at_home)
    )


def mounted_here(cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> tuple[str, ...] | None:
    """Where the cluster's file systems are mounted on this machine; None where AWS names none of the cluster."""
    storage = cluster.storage
    if not storage:
        return None
    return tuple(
        str(mount.point) for mount in mounts if any(is_mount_of(mount, one) for one in storage)
    )


# --------------------------------------------------------------------------------------------------
# Finding a HyperPod cluster, and an instance of it, by what people call them.


async def find_cluster(aws: Aws, cluster: str) -> HyperpodCluster:
    """A cluster by its name or ARN.

    Raises:
        NotFoundError: There is none.
        HyperpodError: See `aws.errors`.
    """
    return await describe_cluster(aws, HyperpodCluster(cluster, cluster, await aws.region(), ""))


def is_called(instance: Instance, node: str) -> bool:
    """Whether people call an instance so: by its id, or its name in Kubernetes, in Slurm or in the private network."""
    host = instance.host or ""
    known = {host, host.partition(".")[0]} if host else set()
    return node.removeprefix("hyperpod-") == instance.name or node in known


async def find_instance(aws: Aws, cluster: str, node: str) -> Instance:
    """An instance of a cluster by what people call a node.

    Args:
        aws: AWS in the cluster's region.
        cluster: Name or ARN of the cluster.
        node: Its instance id, its name in Kubernetes (``hyperpod-i-...``), or its name in the private network, which Slurm shortens to
            its first part.

    Raises:
        NotFoundError: There is no such cluster, or no such node (``no_such_node``).
        HyperpodError: See `aws.errors`.
    """
    async for page in list_instances(aws, cluster):
        for one in page:
            if is_called(one, node):
                return one
    raise NotFoundError(
        f"the cluster {cluster} has no node {node}",
        code="no_such_node",
        hint=f"see: hpj nodes --hyperpod {cluster}",
        detail={"field": "node"},
    )


# --------------------------------------------------------------------------------------------------
# HyperPod clusters and their nodes as rows of tables: one value a column, so that they can be sorted and searched.

NOT_LISTED = "not-listed"
"""State of a node that the scheduler has and AWS does not list."""


@dataclass(frozen=True)
class ClusterRow:
    """A HyperPod cluster.

    Attributes:
        name: Its name.
        arn: Its ARN.
        region: Its region.
        state: Its state in our words.
        status: The same in AWS'.
        orchestrator: ``slurm`` or ``kubernetes``; None where it is not known (yet).
        nodes: How many instances it has.
        target: How many it is to have.
        created_at: When it was made (Unix seconds).
        image_status: Whether updates of its software are due.
        configured_as: The names under which the configuration has it.
        mounted_here: Where its file systems are mounted on this machine; None where it is not known which it has.
        described_at: When AWS was asked for its description (Unix seconds); None: not yet, or it could not be had.
        reason: What is to be said of it.
        reach: A word for whether one can submit to it from here (`model.reach.REACHES`).
        reach_reason: The same as a sentence.
        reach_next: What to do about it.
    """

    name: str
    arn: str
    region: str
    state: str
    status: str
    orchestrator: str | None
    nodes: int | None
    target: int | None
    created_at: Time | None
    image_status: str | None
    configured_as: tuple[str, ...]
    mounted_here: tuple[str, ...] | None
    described_at: Time | None
    reason: str | None
    reach: str | None = None
    reach_reason: str | None = None
    reach_next: str | None = None


@dataclass(frozen=True)
class NodeRow:
    """A node of a HyperPod cluster, as AWS and the scheduler know it.

    Attributes:
        name: The instance id; the scheduler's name where AWS lists no instance.
        state: AWS' state in our words; `NOT_LISTED` where AWS lists none.
        status: The same in AWS' words.
        reason: AWS' sentence on the state, and what is to be said where one side does not have the node.
        instance_group: Its instance group.
        instance_type: Its type.
        launched_at: When the instance was started (Unix seconds).
        host: Its name in the private network.
        image_version: Version of its software.
        image_status: Whether updates of it are due.
        node: The scheduler's name of it.
        scheduler_state: The scheduler's state of it.
        scheduler_reason: The scheduler's sentence on that.
        accelerators: How many GPUs or the like the scheduler has there; None where it does not know the node.
        accelerators_free: How many of them a new job can get.
        jobs: The scheduler's ids of the jobs on it.
    """

    name: str
    state: str
    status: str | None
    reason: str | None
    instance_group: str | None
    instance_type: str | None
    launched_at: Time | None
    host: str | None
    image_version: str | None
    image_status: str | None
    node: str | None
    scheduler_state: str | None
    scheduler_reason: str | None
    accelerators: int | None
    accelerators_free: int | None
    jobs: tuple[str, ...]


def cluster_row(cluster: HyperpodCluster, described_at: float | None) -> ClusterRow:
    """The row of a cluster.

    Args:
        cluster: The cluster, as far as it is known.
        described_at: When its description was asked for (Unix seconds); None: it has none.
    """
    return ClusterRow(
        name=cluster.name,
        arn=cluster.arn,
        region=cluster.region,
        state=cluster.state,
        status=cluster.status,
        orchestrator=cluster.orchestrator,
        nodes=cluster.nodes,
        target=cluster.target,
        created_at=cluster.created_at,
        image_status=cluster.image_status,
        configured_as=cluster.configured_as,
        mounted_here=cluster.mounted_here,
        described_at=described_at,
        reason=cluster.reason,
        reach=cluster.reach.word if cluster.reach else None,
        reach_reason=cluster.reach.sentence if cluster.reach else None,
        reach_next=cluster.reach.next_step if cluster.reach else None,
    )


def node_row(joined: JoinedNode) -> NodeRow:
    """The row of a node that at least one side knows."""
    instance, node = joined.instance, joined.node
    old = instance.replaces if instance else None
    words = (
        instance.reason if instance else None,
        f"it has taken the place of {old}" if old else None,
        joined.remark,
    )
    return NodeRow(
        name=instance.name if instance else node.name if node else "",
        state=instance.state if instance else NOT_LISTED,
        status=instance.status if instance else None,
        reason="; ".join(word.rstrip(".") for word in words if word) or None,
        instance_group=instance.instance_group
        if instance
        else node.instance_group
        if node
        else None,
        instance_type=instance.instance_type if instance else node.instance_type if node else None,
        launched_at=instance.launched_at if instance else None,
        host=instance.host if instance else None,
        image_version=instance.image_version if instance else None,
        image_status=instance.image_status if instance else None,
        node=node.name if node else None,
        scheduler_state=node.state if node else None,
        scheduler_reason=node.reason if node else None,
        accelerators=node.accelerators if node else None,
        accelerators_free=node.accelerators_free if node else None,
        jobs=tuple(node.jobs) if node else (),
    )
