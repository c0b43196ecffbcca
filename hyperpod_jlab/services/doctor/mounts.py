"""Steps on the file systems that are mounted here: which, how, and whether they are those of the clusters."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath

from hyperpod_jlab.aws.lustre import LustreMount, is_mount_of
from hyperpod_jlab.aws.spaces import Space
from hyperpod_jlab.model.check import Step, Told, fail, ok, warn
from hyperpod_jlab.model.config import SlurmCluster
from hyperpod_jlab.model.hyperpod import HyperpodCluster, LustreStorage
from hyperpod_jlab.services.doctor.at_aws import AtAws, file_system_of
from hyperpod_jlab.services.doctor.network import joined
from hyperpod_jlab.services.doctor.opened import CONFIGURATION, Opened
from hyperpod_jlab.services.doctor.studio import HYPERPOD, ROLE
from hyperpod_jlab.storage.mounts import mount_of
from hyperpod_jlab.storage.patience import within


class MountLooks:
    """Looks at what is mounted."""

    def __init__(self, opened: Opened, at_aws: AtAws) -> None:
        self._opened = opened
        self._at = at_aws

    def steps(self) -> list[Step]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            Step("mount", "FSx for Lustre", "mount", self._mounted),
            Step("mounts-missing", "missing mounts", "mount", self._missing, needs=needs),
            *(
                Step("shared", "storage shared with", "mount", self._shared(name), needs, name)
                for name in self._at.named
            ),
        ]

    async def _mounted(self) -> Told | None:
        mounts = self._at.mounts
        if not mounts:
            if self._at.studio is None:
                return None
            return warn(
                "no file system is mounted here, so runs cannot share one with a cluster",
                "add one to the space's custom file systems; it is there after a restart",
            )
        words = ", ".join(map(_words, mounts))
        closed = [str(mount.point) for mount in mounts if mount.read_only]
        if closed:
            return warn(
                f"{words}; only to be read: {', '.join(closed)}",
                "let it be mounted for writing, or let runs go elsewhere: path under [storage]",
                "admin",
            )
        return ok(words)

    async def _missing(self) -> Told | None:
        """File systems of the space and of clusters that are not here, each with the step that is missing."""
        if self._at.studio is None:
            return None
        here = self._at.mounts
        clusters = await self._at.our_clusters()
        told = [
            await self._not_mounted(file_system_of(one.dns_name), cluster)
            for cluster in clusters
            for one in cluster.storage
            if not any(is_mount_of(mount, one) for mount in here)
        ]
        space = await self._at.known(self._at.space())
        known = {mount.file_system for mount in here} | {
            file_system_of(one.dns_name) for cluster in clusters for one in cluster.storage
        }
        told += [
            await self._not_mounted(name, None)
            for name in (space.file_systems if space else ())
            if name not in known
        ]
        if not told and clusters:
            names = ", ".join(cluster.name for cluster in clusters)
            return ok(f"all that AWS names of the space and of {names} is mounted here")
        return joined(told)

    async def _not_mounted(self, name: str | None, cluster: HyperpodCluster | None) -> Told:
        """A file system that is not mounted here: the space was not restarted, does not name it, or may not."""
        of = f"the file system {name} of " + (cluster.name if cluster else "this space")
        words = f"{of} is not mounted here"
        space = await self._at.known(self._at.space())
        domain = await self._at.known(self._at.domain())
        if space is None or domain is None or name is None:
            return warn(words, "add it to the space's custom file systems and restart it")
        if name in space.file_systems:
            return fail(
                f"{words}, though the space names it",
                "restart the space; if it does not start then, mend what is above: security groups, network interfaces",
            )
        profile = await self._at.known(self._at.profile())
        own = (
            ()
            if space.shared
            else (*domain.file_systems, *(profile.file_systems if profile else ()))
        )
        allowed = {one for one, _ in (*own, *(domain.shared_file_systems if space.shared else ()))}
        region = await self._at.aws.region()
        if name in allowed:
            return warn(
                f"{words}: the space does not name it",
                _add_to_space(region, domain.name, space, name),
            )
        if space.shared or profile is None:
            who, what = "the domain", "DefaultSpaceSettings" if space.shared else "user profile"
            return warn(
                f"{words}: {who} does not offer it",
                f"add it to CustomFileSystemConfigs of the {what}",
                "admin",
            )
        configs = [
            {"FSxLustreFileSystemConfig": {"FileSystemId": one, "FileSystemPath": folder}}
            for one, folder in (*profile.file_systems, (name, f"/{profile.name}"))
        ]
        settings = json.dumps({"CustomFileSystemConfigs": configs})
        return warn(
            f"{words}: neither the domain nor the user profile {profile.name} offers it",
            f"aws sagemaker update-user-profile --region {region} --domain-id {domain.name} "
            f"--user-profile-name {profile.name} --user-settings '{settings}' (the folder must be there, and be theirs)",
            "admin",
        )

    def _shared(self, name: str) -> Callable[[], Awaitable[Told | None]]:
        async def look() -> Told | None:
            clusters = await self._at.clusters()
            cluster = next((one for one in clusters if name in one.configured_as), None)
            if cluster is None or not cluster.storage:
                return None
            root = self._opened.hyperpod.partition.root
            mount = await within(root, lambda: self._mount_of(root))
            return self._compared(name, cluster, root, mount)

        return look

    def _mount_of(self, root: Path) -> LustreMount | None:
        point = mount_of(root).point
        return next((one for one in reversed(self._at.mounts) if str(one.point) == point), None)

    def _compared(
        self, name: str, cluster: HyperpodCluster, root: Path, mount: LustreMount | None
    ) -> Told:
        """The partition here against what the cluster's instances mount."""
        storage = next((one for one in cluster.storage if mount and is_mount_of(mount, one)), None)
        if mount is None or storage is None:
            theirs = ", ".join(
                file_system_of(one.dns_name) or one.dns_name for one in cluster.storage
            )
            here = next(
                (one for one in self._at.mounts if is_mount_of(one, cluster.storage[0])), None
            )
            return warn(
                f"runs go to {root}, which is not on the file system that the nodes of {cluster.name} mount, {theirs}",
                f'path = "{here.point}" under [storage] in the configuration'
                if here
                else "let that file system be mounted here (see missing mounts), and name it as path under [storage]",
            )
        return self._at_same_place(name, root, mount, storage)

    def _at_same_place(
        self, name: str, root: Path, mount: LustreMount, storage: LustreStorage
    ) -> Told:
        inner = PurePosixPath(mount.folder.lstrip("/")) / root.relative_to(mount.point)
        found = file_system_of(storage.dns_name) or storage.mount_name
        words = f"{root} is /{inner} of {found}"
        config = self._opened.hyperpod.settings.clusters[name]
        if storage.path is None or not isinstance(config, SlurmCluster):
            return ok(f"{words}, which the nodes mount too")
        by_aws = str(PurePosixPath(storage.path) / inner)
        told = config.storage or str(root)
        if PurePosixPath(told) == PurePosixPath(by_aws):
            return ok(f"{words}, and {by_aws} on the nodes")
        return warn(
            f"{words}: by AWS the nodes have it at {by_aws}, by the configuration at {told}",
            f'storage = "{by_aws}" under [clusters.{name}] in the configuration, unless a life cycle script mounts it elsewhere',
        )


def _words(mount: LustreMount) -> str:
    return f"{mount.file_system or mount.mount_name} at {mount.point} (its {mount.folder})"


def _add_to_space(region: str, domain: str, space: Space, name: str) -> str:
    every = ",".join(
        f"{{FSxLustreFileSystem={{FileSystemId={one}}}}}" for one in (*space.file_systems, name)
    )
    return (
        f"stop the space's application, then: aws sagemaker update-space --region {region} --domain-id {domain} "
        f"--space-name {space.name} --space-settings 'CustomFileSystems=[{every}]', and start it"
    )
