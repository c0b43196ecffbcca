"""Reachability of HyperPod clusters: checks whether you can submit from this machine, once per cluster, in the background, with a timeout."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from hyperpod_jlab.aws.clusters import list_instances
from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of, lustre_mounts
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.configuration import find_partition
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.reach import NOT_CHECKED, Reach, ReachFacts, SubmitTarget, reach_of

TIMEOUT_S = 8.0
"""Timeout of a check, in seconds."""

_CONCURRENCY = 4
"""Clusters that are checked concurrently."""

_TTL_S = 600.0
"""Seconds after which an unreachable cluster is checked again; a reachable one is not."""

_SLURM_BIN = Path("/opt/slurm/bin")
"""Where HyperPod's image installs Slurm's commands."""


class ReachChecker:
    """Whether you can submit to the clusters of one region from this machine.

    Args:
        settings: The configuration.
        aws: AWS in that region; checks use a shorter timeout.
        mounts: The mounted Lustre file systems; default: this machine's current mounts.
    """

    def __init__(self, settings: Settings, aws: Aws, mounts: Sequence[LustreMount] | None = None) -> None:
        self._settings = settings
        self._aws = aws
        self._mounts = mounts
        self._local_path = str(find_partition(settings).root)
        self._cache: Cache[str, ReachFacts] = Cache(lambda facts: float("inf") if facts.problem is None else _TTL_S)
        self._semaphore = asyncio.Semaphore(_CONCURRENCY)
        self._slurm: Cache[None, frozenset[str]] = Cache(lambda _: TIMEOUT_S)

    def with_cached_reach(self, clusters: Iterable[HyperpodCluster]) -> list[HyperpodCluster]:
        """The clusters with their cached reachability; starts no checks."""
        mounts = lustre_mounts() if self._mounts is None else self._mounts
        return [replace(cluster, reach=self._reach(cluster, mounts)) for cluster in clusters]

    def start_checks(
        self, clusters: Iterable[HyperpodCluster], *, refresh: bool = False
    ) -> list[asyncio.Task[ReachFacts]]:
        """Start the checks that are due, in the background; returns the checks in flight for these clusters.

        Args:
            clusters: The clusters.
            refresh: Check again, regardless of earlier results.
        """
        tasks = []
        for cluster in clusters:
            if self._is_due(cluster, refresh=refresh):
                self._cache.start(cluster.arn, partial(self._check, cluster))
            task = self._cache.running(cluster.arn)
            if task is not None:
                tasks.append(task)
        return tasks

    async def close(self) -> None:
        """Cancel the checks in flight."""
        await self._cache.close()
        await self._slurm.close()

    @property
    def commands(self) -> str | None:
        """The folder of Slurm's commands if it is not on the PATH; None if it is, or if Slurm is not installed."""
        return _find_commands()

    def name_for(self, cluster: HyperpodCluster) -> str:
        """A free name in the configuration for the cluster: its own, with a number if that is taken."""
        used_names, number = self._settings.clusters, 1
        name = cluster.name
        while name in used_names:
            number += 1
            name = f"{cluster.name[:60]}-{number}"
        return name

    def target_of(self, cluster: HyperpodCluster) -> SubmitTarget:
        """Where runs are submitted, as the cluster sees it."""
        return self._target(cluster, lustre_mounts() if self._mounts is None else self._mounts)

    def _reach(self, cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> Reach:
        cached = self._cache.last(cluster.arn)
        facts = cached.value if cached is not None else None
        return reach_of(cluster, facts, self._target(cluster, mounts), self.name_for(cluster))

    def _target(self, cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> SubmitTarget:
        pairs = [(mount, storage) for mount in mounts for storage in cluster.storage if is_mount_of(mount, storage)]
        for mount, storage in pairs:
            if Path(self._local_path).is_relative_to(mount.point):
                if storage.path is None:
                    return SubmitTarget(self._local_path)
                relative_path = PurePosixPath(self._local_path).relative_to(str(mount.point))
                folder = mount.folder.strip("/")
                return SubmitTarget(self._local_path, str(PurePosixPath(storage.path) / folder / relative_path))
        return SubmitTarget(self._local_path, mount=str(pairs[0][0].point) if pairs else None)

    def _is_due(self, cluster: HyperpodCluster, *, refresh: bool) -> bool:
        """Whether a check could find something new."""
        if self._cache.is_fresh(cluster.arn) and not refresh:
            return False
        mounts = lustre_mounts() if self._mounts is None else self._mounts
        return reach_of(cluster, None, self._target(cluster, mounts)).word == NOT_CHECKED

    async def _check(self, cluster: HyperpodCluster) -> ReachFacts:
        async with self._semaphore:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    if cluster.on_slurm:
                        return await self._check_slurm(cluster)
                    return await self._check_eks(cluster)
            except TimeoutError:
                return ReachFacts(UnreachableError(f"no answer within {TIMEOUT_S:g} s"))
            except HyperpodError as error:
                return ReachFacts(error)

    async def _check_slurm(self, cluster: HyperpodCluster) -> ReachFacts:
        commands = _find_commands()
        # The nodes of the Slurm cluster that answers on this machine: queried once for all
        # clusters.
        names = await self._slurm.get(None, lambda: _list_slurm_nodes(commands))
        async for page in list_instances(await self._fast_client(), cluster.name):
            # One page is enough to identify the Slurm cluster. Controllers are not Slurm nodes.
            roles = {group.name: group.slurm_role for group in cluster.groups or ()}
            hosts = [
                instance.host.partition(".")[0]
                for instance in page
                if instance.host and roles.get(instance.instance_group) != "Controller"
            ]
            return ReachFacts(None, commands, len(hosts), sum(host in names for host in hosts))
        return ReachFacts(None, commands)

    async def _check_eks(self, cluster: HyperpodCluster) -> ReachFacts:
        from hyperpod_jlab.engines.kubernetes import missing_package_error

        try:
            from hyperpod_jlab.engines.kubernetes.api.eks import check_access
        except ModuleNotFoundError as error:
            raise missing_package_error(error) from error
        eks = (cluster.eks_arn or "").rpartition("/")[2]
        access = await check_access(await self._fast_client(), eks)
        return ReachFacts(access.problem, private=access.private, allowed=access.allowed)

    async def _fast_client(self) -> Aws:
        return Aws(await self._aws.region(), fail_fast=True)


async def _list_slurm_nodes(commands: str | None) -> frozenset[str]:
    from hyperpod_jlab.engines.slurm.client import SlurmClient
    from hyperpod_jlab.engines.slurm.transport import LocalTransport

    text = await SlurmClient(LocalTransport(commands)).query(["sinfo", "--noheader", "--all", "-N", "-o", "%N"])
    return frozenset(text.split())


def _find_commands() -> str | None:
    """The folder of Slurm's commands if it is not on the PATH."""
    is_elsewhere = shutil.which("sinfo") is None and os.access(_SLURM_BIN / "sinfo", os.X_OK)
    return str(_SLURM_BIN) if is_elsewhere else None
