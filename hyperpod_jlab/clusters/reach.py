"""Looking whether one can submit to HyperPod clusters from here: once for each, in the background, and not for long."""

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
from hyperpod_jlab.core.reach import NOT_LOOKED, Reach, ReachFacts, SubmitTarget, reach_of

LONGEST = 8.0
"""Seconds after which a look is given up."""

_AT_ONCE = 4
"""Clusters that are looked at at the same time."""

_KEPT = 600.0
"""Seconds after which a cluster that could not be reached is looked at again; one that could is not."""

_SLURM = Path("/opt/slurm/bin")
"""Where HyperPod's image has Slurm's commands."""


class Reaches:
    """Whether one can submit to the clusters of one region from this machine.

    Args:
        settings: The configuration.
        aws: AWS in that region; the looks ask it for less patience.
        mounts: The Lustre file systems that are mounted here; default: those of this machine at the time.
    """

    def __init__(
        self, settings: Settings, aws: Aws, mounts: Sequence[LustreMount] | None = None
    ) -> None:
        self._settings = settings
        self._aws = aws
        self._mounts = mounts
        self._here = str(find_partition(settings).root)
        self._looks: Cache[str, ReachFacts] = Cache(
            lambda look: float("inf") if look.problem is None else _KEPT
        )
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._slurm: Cache[None, frozenset[str]] = Cache(lambda _: LONGEST)

    def known(self, clusters: Iterable[HyperpodCluster]) -> list[HyperpodCluster]:
        """The clusters with what is known of the way to each by now, without looking."""
        mounts = lustre_mounts() if self._mounts is None else self._mounts
        return [replace(one, reach=self._reach(one, mounts)) for one in clusters]

    def begin(
        self, clusters: Iterable[HyperpodCluster], *, refresh: bool = False
    ) -> list[asyncio.Task[ReachFacts]]:
        """Look at those that need a look, in the background; the looks that go on for these clusters.

        Args:
            clusters: The clusters.
            refresh: Look again, whatever was found before.
        """
        going = []
        for one in clusters:
            if self._is_due(one, refresh=refresh):
                self._looks.start(one.arn, partial(self._look, one))
            task = self._looks.running(one.arn)
            if task is not None:
                going.append(task)
        return going

    async def close(self) -> None:
        """Break off what goes on."""
        await self._looks.close()
        await self._slurm.close()

    @property
    def commands(self) -> str | None:
        """The folder of Slurm's commands where they are not on the PATH; None: they are, or are not here."""
        return _commands()

    def name_for(self, cluster: HyperpodCluster) -> str:
        """A name under which the configuration can have a cluster: its own, or that with a number where it is taken."""
        taken, number = self._settings.clusters, 1
        name = cluster.name
        while name in taken:
            number += 1
            name = f"{cluster.name[:60]}-{number}"
        return name

    def place_of(self, cluster: HyperpodCluster) -> SubmitTarget:
        """Where runs go, as the cluster sees it."""
        return self._place(cluster, lustre_mounts() if self._mounts is None else self._mounts)

    def _reach(self, cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> Reach:
        known = self._looks.last(cluster.arn)
        look = known.value if known is not None else None
        return reach_of(cluster, look, self._place(cluster, mounts), self.name_for(cluster))

    def _place(self, cluster: HyperpodCluster, mounts: Sequence[LustreMount]) -> SubmitTarget:
        pairs = [
            (mount, storage)
            for mount in mounts
            for storage in cluster.storage
            if is_mount_of(mount, storage)
        ]
        for mount, storage in pairs:
            if Path(self._here).is_relative_to(mount.point):
                if storage.path is None:
                    return SubmitTarget(self._here)
                within = PurePosixPath(self._here).relative_to(str(mount.point))
                folder = mount.folder.strip("/")
                return SubmitTarget(self._here, str(PurePosixPath(storage.path) / folder / within))
        return SubmitTarget(self._here, mount=str(pairs[0][0].point) if pairs else None)

    def _is_due(self, cluster: HyperpodCluster, *, refresh: bool) -> bool:
        """Whether a look could tell something that is not known."""
        if self._looks.is_fresh(cluster.arn) and not refresh:
            return False
        mounts = lustre_mounts() if self._mounts is None else self._mounts
        return reach_of(cluster, None, self._place(cluster, mounts)).word == NOT_LOOKED

    async def _look(self, cluster: HyperpodCluster) -> ReachFacts:
        async with self._room:
            try:
                async with asyncio.timeout(LONGEST):
                    if cluster.on_slurm:
                        return await self._look_at_slurm(cluster)
                    return await self._look_at_eks(cluster)
            except TimeoutError:
                return ReachFacts(UnreachableError(f"no answer within {LONGEST:g} s"))
            except HyperpodError as error:
                return ReachFacts(error)

    async def _look_at_slurm(self, cluster: HyperpodCluster) -> ReachFacts:
        commands = _commands()
        # The nodes of the Slurm that answers here: asked for once for all clusters.
        names = await self._slurm.get(None, lambda: _ask_slurm(commands))
        async for page in list_instances(await self._hasty(), cluster.name):
            # One page is enough to see whose Slurm this is. Controllers are no nodes of Slurm.
            roles = {group.name: group.slurm_role for group in cluster.groups or ()}
            hosts = [
                one.host.partition(".")[0]
                for one in page
                if one.host and roles.get(one.instance_group) != "Controller"
            ]
            return ReachFacts(None, commands, len(hosts), sum(host in names for host in hosts))
        return ReachFacts(None, commands)

    async def _look_at_eks(self, cluster: HyperpodCluster) -> ReachFacts:
        from hyperpod_jlab.engines.kubernetes.kind import missing_package

        try:
            from hyperpod_jlab.engines.kubernetes.api.eks import check_access
        except ModuleNotFoundError as error:
            raise missing_package(error) from error
        eks = (cluster.eks_arn or "").rpartition("/")[2]
        found = await check_access(await self._hasty(), eks)
        return ReachFacts(found.problem, private=found.private, allowed=found.allowed)

    async def _hasty(self) -> Aws:
        return Aws(await self._aws.region(), hasty=True)


async def _ask_slurm(commands: str | None) -> frozenset[str]:
    from hyperpod_jlab.engines.slurm.client import SlurmClient
    from hyperpod_jlab.engines.slurm.transport import Here

    text = await SlurmClient(Here(commands)).ask(["sinfo", "--noheader", "--all", "-N", "-o", "%N"])
    return frozenset(text.split())


def _commands() -> str | None:
    """The folder of Slurm's commands where they are not on the PATH."""
    found = shutil.which("sinfo") is None and os.access(_SLURM / "sinfo", os.X_OK)
    return str(_SLURM) if found else None
