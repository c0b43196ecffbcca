"""Steps on the mounted file systems: which, how, and whether they are those of the clusters."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath

from hyperpod_jlab.aws.domains import Space
from hyperpod_jlab.aws.file_systems import LustreMount, is_mount_of
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.clusters.identity import IdentityQueries, find_user_identity
from hyperpod_jlab.clusters.mounts import inspect
from hyperpod_jlab.core.check import CheckResult, CheckStep, Responsible, fail, from_error, ok, warn
from hyperpod_jlab.core.errors import HyperpodError, StorageError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, LustreStorage
from hyperpod_jlab.core.quantities import format_size
from hyperpod_jlab.features.doctor.aws import HYPERPOD, ROLE, AwsEnvironment, file_system_of
from hyperpod_jlab.features.doctor.models import CONFIGURATION, LazyServices
from hyperpod_jlab.features.doctor.network import join_results
from hyperpod_jlab.run.listing import RunFilter
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.acl import has_acl
from hyperpod_jlab.storage.index import default_path
from hyperpod_jlab.storage.migration import runs_in_old_layout
from hyperpod_jlab.storage.mounts import disk_space, mount_of
from hyperpod_jlab.storage.owners import ancestor_folders
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.timeouts import run_with_timeout


class MountChecks:
    """Checks of the mounts."""

    def __init__(self, services: LazyServices, environment: AwsEnvironment) -> None:
        self._services = services
        self._environment = environment

    def steps(self) -> list[CheckStep]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            CheckStep("mount", "FSx for Lustre", "mount", self._mounted),
            CheckStep("mounts-missing", "missing mounts", "mount", self._missing, needs=needs),
            *(
                CheckStep("shared", "storage shared with", "mount", self._shared(name), needs, name)
                for name in self._environment.configured_clusters_of
            ),
        ]

    async def _mounted(self) -> CheckResult | None:
        mounts = self._environment.mounts
        if not mounts:
            if self._environment.studio is None:
                return None
            return warn(
                "no file system is mounted here, so runs cannot share a file system with a cluster",
                "add one to the custom file systems of the space and restart it",
            )
        evidence = ", ".join(map(_mount_text, mounts))
        read_only_mounts = [str(mount.point) for mount in mounts if mount.read_only]
        if read_only_mounts:
            return warn(
                f"{evidence}; read-only: {', '.join(read_only_mounts)}",
                "mount it for writing, or set path under [storage] to another folder",
                "admin",
            )
        return ok(evidence)

    async def _missing(self) -> CheckResult | None:
        """File systems of the space and of clusters that are not mounted here, each with the missing step."""
        if self._environment.studio is None:
            return None
        mounts = self._environment.mounts
        clusters = await self._environment.own_clusters()
        results = [
            await self._not_mounted(file_system_of(storage.dns_name), cluster)
            for cluster in clusters
            for storage in cluster.storage
            if not any(is_mount_of(mount, storage) for mount in mounts)
        ]
        space = await self._environment.or_none(self._environment.space())
        mounted_names = {mount.file_system for mount in mounts} | {
            file_system_of(storage.dns_name) for cluster in clusters for storage in cluster.storage
        }
        results += [
            await self._not_mounted(name, None)
            for name in (space.file_systems if space else ())
            if name not in mounted_names
        ]
        if not results and clusters:
            names = ", ".join(cluster.name for cluster in clusters)
            return ok(f"all file systems that AWS lists for the space and {names} are mounted here")
        return join_results(results)

    async def _not_mounted(self, name: str | None, cluster: HyperpodCluster | None) -> CheckResult:
        """A file system that is not mounted: the space was not restarted, does not name it, or has no permission."""
        description = f"the file system {name} of " + (cluster.name if cluster else "this space")
        evidence = f"{description} is not mounted here"
        space = await self._environment.or_none(self._environment.space())
        domain = await self._environment.or_none(self._environment.domain())
        if space is None or domain is None or name is None:
            return warn(evidence, "add it to the custom file systems of the space and restart it")
        if name in space.file_systems:
            return fail(
                f"{evidence}, although the settings of the space list it",
                "restart the space; if it does not start, fix the security groups and network interfaces above",
            )
        profile = await self._environment.or_none(self._environment.profile())
        own_systems = () if space.shared else (*domain.file_systems, *(profile.file_systems if profile else ()))
        allowed = {item for item, _ in (*own_systems, *(domain.shared_file_systems if space.shared else ()))}
        region = await self._environment.aws.region()
        if name in allowed:
            return warn(
                f"{evidence}: the settings of the space do not list it",
                _add_to_space_command(region, domain.name, space, name),
            )
        if space.shared or profile is None:
            owner, settings_name = ("the domain", "DefaultSpaceSettings" if space.shared else "user profile")
            return warn(
                f"{evidence}: {owner} does not offer it",
                f"add it to CustomFileSystemConfigs of the {settings_name}",
                "admin",
            )
        configs = [
            {"FSxLustreFileSystemConfig": {"FileSystemId": item, "FileSystemPath": folder}}
            for item, folder in (*profile.file_systems, (name, f"/{profile.name}"))
        ]
        settings = json.dumps({"CustomFileSystemConfigs": configs})
        return warn(
            f"{evidence}: neither the domain nor the user profile {profile.name} offers it",
            f"aws sagemaker update-user-profile --region {region} --domain-id {domain.name} "
            f"--user-profile-name {profile.name} --user-settings '{settings}' (the folder must exist and belong to the user)",
            "admin",
        )

    def _shared(self, name: str) -> Callable[[], Awaitable[CheckResult | None]]:
        async def look() -> CheckResult | None:
            clusters = await self._environment.clusters()
            cluster = next((item for item in clusters if name in item.configured_as), None)
            if cluster is None or not cluster.storage:
                return None
            root = self._services.hyperpod.partition.root
            mount = await run_with_timeout(root, lambda: self._mount_of(root))
            return self._compare(name, cluster, root, mount)

        return look

    def _mount_of(self, root: Path) -> LustreMount | None:
        point = mount_of(root).point
        return next((mount for mount in reversed(self._environment.mounts) if str(mount.point) == point), None)

    def _compare(self, name: str, cluster: HyperpodCluster, root: Path, mount: LustreMount | None) -> CheckResult:
        """Compare the partition with the mounts of the cluster's instances."""
        storage = next(
            (storage_item for storage_item in cluster.storage if mount and is_mount_of(mount, storage_item)), None
        )
        if mount is None or storage is None:
            cluster_systems = ", ".join(
                file_system_of(storage_item.dns_name) or storage_item.dns_name for storage_item in cluster.storage
            )
            local_mount = next(
                (
                    storage_item
                    for storage_item in self._environment.mounts
                    if is_mount_of(storage_item, cluster.storage[0])
                ),
                None,
            )
            return warn(
                f"runs are stored in {root}, which is not on the file system of the nodes of {cluster.name}, {cluster_systems}",
                f'path = "{local_mount.point}" under [storage] in the configuration'
                if local_mount
                else "mount that file system here (see missing mounts), and set path under [storage] to it",
            )
        return self._compare_folders(name, root, mount, storage)

    def _compare_folders(self, name: str, root: Path, mount: LustreMount, storage: LustreStorage) -> CheckResult:
        folder_path = PurePosixPath(mount.folder.lstrip("/")) / root.relative_to(mount.point)
        name_in_cluster = file_system_of(storage.dns_name) or storage.mount_name
        evidence = f"{root} is /{folder_path} of {name_in_cluster}"
        configured_path = self._services.hyperpod.settings.clusters[name].storage_on_hosts(str(root))
        if storage.path is None or configured_path is None:
            return ok(f"{evidence}, which the nodes also mount")
        by_aws = str(PurePosixPath(storage.path) / folder_path)
        if PurePosixPath(configured_path) == PurePosixPath(by_aws):
            return ok(f"{evidence}, and {by_aws} on the nodes")
        return warn(
            f"{evidence}: AWS reports it at {by_aws} on the nodes, but the configuration has {configured_path}",
            f'storage = "{by_aws}" under [clusters.{name}] in the configuration, unless a lifecycle script mounts it elsewhere',
        )


def _mount_text(mount: LustreMount) -> str:
    return f"{mount.file_system or mount.mount_name} at {mount.point} (its {mount.folder})"


def _add_to_space_command(region: str, domain: str, space: Space, name: str) -> str:
    all_systems = ",".join(
        f"{{FSxLustreFileSystem={{FileSystemId={file_system}}}}}" for file_system in (*space.file_systems, name)
    )
    return (
        f"stop the space's application, then: aws sagemaker update-space --region {region} --domain-id {domain} "
        f"--space-name {space.name} --space-settings 'CustomFileSystems=[{all_systems}]', and start it"
    )


# --------------------------------------------------------------------------------------------------
# Steps on the storage partition for runs: permissions, disk usage, existing runs.

STORAGE = "storage"
"""The step on whether the partition is usable."""

_TIMEOUT = 20.0
"""Timeout, in seconds, for AWS to identify the user; a step has more."""

_LOW_SPACE, _MIN_SPACE = 5 * 1024**3, 100 * 1024**2
_LOW_FILES = 10_000


def partition_steps(services: LazyServices) -> list[CheckStep]:
    """Steps on the storage partition for runs."""

    def look(work: Callable[[Partition], CheckResult]) -> Callable[[], Awaitable[CheckResult]]:
        async def run_check() -> CheckResult:
            partition = services.hyperpod.partition
            return await run_with_timeout(partition.root, lambda: work(partition))

        return run_check

    async def privacy() -> CheckResult:
        partition = services.hyperpod.partition
        result = await look(_mode)()
        if result.level != "ok":
            return result
        return await _identity(partition) or result

    async def runs() -> CheckResult:
        return await _runs(services.hyperpod)

    needs = (STORAGE,)
    return [
        CheckStep(STORAGE, "storage", "partition", look(_storage), needs=(CONFIGURATION,)),
        CheckStep("parents", "folders above", "partition", look(_parents), needs=(CONFIGURATION,)),
        CheckStep("privacy", "privacy", "partition", privacy, needs=needs),
        CheckStep("layout", "layout", "partition", look(_layout), needs=needs),
        CheckStep("writing", "writing", "partition", look(_check_writing), needs=needs),
        CheckStep("room", "room", "partition", look(lambda target: _check_space(target.root)), needs=needs),
        CheckStep("runs", "runs", "partition", runs, needs=needs),
    ]


def _storage(partition: Partition) -> CheckResult:
    root = partition.root
    mount = mount_of(root)
    kind = f"{mount.kind} at {mount.point}" if mount.kind else mount.point
    try:
        partition.prepare()
    except HyperpodError as error:
        return from_error(error)
    return ok(f"{root} ({kind})")


def _mode(partition: Partition) -> CheckResult:
    status = partition.folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if has_acl(partition.folder):
        mode &= ~0o070  # an ACL's mask: only for users that it names
    if not partition.shared and mode & 0o077:
        return warn(
            f"other users can list {partition.folder} (mode {mode:04o})",
            f"chmod 700 {partition.folder}, or set shared = true under [storage] if this is intended",
        )
    evidence = (
        "a private folder that all users of the partition can read" if partition.shared else "private to this user"
    )
    return ok(f"{evidence} (mode {mode:04o}, owner {status.st_uid})")


def _parents(partition: Partition) -> CheckResult:
    """Check the owners of the folders above: they can replace our folder, whatever its own mode is."""
    try:
        parent_folders = ancestor_folders(partition.root)
    except OSError as error:
        return fail(f"{partition.root} cannot be checked: {error.strerror}", "see the storage step")
    evidence = ", ".join(f"{parent.path} (owner {parent.uid}, mode {parent.mode:04o})" for parent in parent_folders)
    bad = [parent for parent in parent_folders if parent.problem is not None]
    for parent in bad:
        problem_text = f"another user can replace your runs: {parent.path} {parent.reason}"
        if parent.problem != "group" or partition.shared:
            return fail(problem_text, parent.fix, "admin")
    if bad:
        return warn(f"{bad[0].path} {bad[0].reason}: its members are trusted", bad[0].fix)
    return ok(f"only you and root can replace your runs: {evidence}")


def _layout(partition: Partition) -> CheckResult:
    old_run_count = sum(1 for _ in runs_in_old_layout(partition))
    if old_run_count:
        return warn(
            f"{old_run_count} of your runs are in the layout of an older version, where other users of a shared partition can replace them",
            "hpj storage migrate",
        )
    return ok(f"runs are in {partition.runs}")


async def _identity(partition: Partition) -> CheckResult | None:
    """A warning if others have the same user id, so that modes do not keep them out; None if unknown."""
    studio = find_studio()
    try:
        user = await asyncio.wait_for(find_user_identity(studio, IdentityQueries(Aws())), _TIMEOUT)
    except TimeoutError:
        user = await find_user_identity(studio, IdentityQueries(None))
    info = await inspect(partition.folder, user)
    identity = user.on_network if info.network else user.on_disk
    if info.isolation is None or identity.own:
        return None
    responsible: Responsible = "you"
    if user.in_shared_space:
        fix = "use a private space for private data"
    elif studio is not None:
        fix = "ask for a new user profile with a unique uid (CustomPosixUserConfig; existing profiles cannot get one)"
        responsible = "admin"
    else:
        fix = "use your own account"
    evidence = f"isolation: {info.isolation.words}, because {identity.evidence}"
    return warn(f"{evidence}; file modes do not protect {partition.folder}", fix, responsible)


def _check_writing(partition: Partition) -> CheckResult:
    """Try what a submit does: exclusive create, link, rename."""
    first = partition.folder / f".doctor-{secrets.token_hex(6)}"
    second = first.with_name(f"{first.name}-link")
    try:
        first.touch(exist_ok=False)
        try:
            os.link(first, second)
        except OSError as error:
            return warn(f"works, but without hard links ({error.strerror}): each submit copies all code")
        second.rename(first)
    except OSError as error:
        return fail(
            f"{partition.folder} cannot be written: {error.strerror}",
            "fix its permissions, or set another partition under [storage]",
        )
    finally:
        for path in (first, second):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return ok("files can be created, linked and renamed")


def _check_space(root: Path) -> CheckResult:
    space = disk_space(root)
    evidence = f"{format_size(space.free)} of {format_size(space.total)} free"
    fix = "remove old runs: hpj clean --older 30d"
    if space.free < _MIN_SPACE:
        return fail(evidence, fix)
    if space.free < _LOW_SPACE:
        return warn(evidence, fix)
    if space.files_free is not None and space.files_free < _LOW_FILES:
        return warn(f"only {space.files_free} more files can be created", fix)
    return ok(evidence)


async def _runs(hyperpod: Hyperpod) -> CheckResult:
    try:
        runs = (await hyperpod.runs.list(RunFilter())).runs
    except StorageError as error:
        return fail(f"runs cannot be listed: {error.message}", error.hint)
    except (HyperpodError, OSError) as error:
        index = default_path(hyperpod.partition)
        fix = f"delete the index, which is only a cache: rm {index}" if index is not None else None
        return fail(f"runs cannot be listed: {error}", fix)
    damaged = [run.run_id for run in runs if run.status.reason_code in {"damaged", "newer_format"}]
    evidence = f"{len(runs)} runs on the partition"
    if damaged:
        sample = ", ".join(damaged[:3]) + (", ..." if len(damaged) > 3 else "")
        return warn(f"{evidence}, {len(damaged)} cannot be read: {sample}", "list runs with: hpj runs")
    return ok(evidence)
