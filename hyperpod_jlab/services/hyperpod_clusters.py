"""The HyperPod clusters of the AWS account, and which of them this machine's configuration has."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances
from hyperpod_jlab.aws.lustre import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.model.cluster import Node, Rows
from hyperpod_jlab.model.config import KubernetesCluster, LocalCluster, Settings
from hyperpod_jlab.model.errors import HyperpodError, NotFoundError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.model.node_join import JoinedNode, join_nodes
from hyperpod_jlab.model.node_places import Places
from hyperpod_jlab.services.engines import Engines

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
        orchestrator = self.settings.clusters[name].orchestrator
        return Rows(join_nodes(orchestrator, instances, nodes, roles), notes)

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
        return await engines.get(name).nodes()
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
        if not isinstance(config, LocalCluster)
        and (
            config.hyperpod in names
            or (isinstance(config, KubernetesCluster) and _is_eks(config, cluster.eks_arn, at_home))
        )
    )


def mounted_here(cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> tuple[str, ...] | None:
    """Where the cluster's file systems are mounted on this machine; None where AWS names none of the cluster."""
    storage = cluster.storage
    if not storage:
        return None
    return tuple(
        str(mount.point) for mount in mounts if any(is_mount_of(mount, one) for one in storage)
    )


def _is_eks(config: KubernetesCluster, eks_arn: str | None, at_home: bool) -> bool:
    """Whether a cluster of the configuration is an EKS cluster; contexts that AWS' own tools make are called by its ARN."""
    if eks_arn is None:
        return False
    return config.context == eks_arn or (at_home and config.eks == eks_arn.rpartition("/")[2])
