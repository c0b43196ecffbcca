"""Choose the folder provisioner from the admin's options: this machine, or a job of a configured cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

from hyperpod_jlab.admin.fsx.folders import FolderProvisioner, LocalFolderProvisioner, RemoteFolderProvisioner
from hyperpod_jlab.admin.fsx.models import MAX_UID, ROOT_UID
from hyperpod_jlab.admin.fsx.reconcile import Reconciler, find_node_mount
from hyperpod_jlab.admin.fsx.request import ProvisionerKind, ProvisionerOptions, StorageRequest
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.config import SchedulerName, Settings
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnsupportedError
from hyperpod_jlab.engines.protocol import require
from hyperpod_jlab.engines.registry import find_engine, make_orchestrator
from hyperpod_jlab.engines.remote_task import RemoteTasks, TaskSettings
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage import owners as users
from hyperpod_jlab.storage.partition import Partition

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


def find_mismatch(options: ProvisionerOptions) -> tuple[str, tuple[str, ...]] | None:
    """The option that the chosen provisioner does not support, and the provisioner that does; None if all fit.

    Args:
        options: The admin's options.
    """
    allowed = {"here": ("mounted_at",)} | {name: _job_options(name) for name in get_args(SchedulerName)}
    for name, value in asdict(_settings(options)).items():
        valid_kinds = tuple(kind for kind, names in allowed.items() if name in names)
        if value is not None and options.by not in valid_kinds:
            return name, valid_kinds
    return None


def needs_mount_path(kind: ProvisionerKind) -> bool:
    """Whether the provisioner is a cluster's jobs, which need the mount path on their nodes."""
    return "mounted_at" in _job_options(kind)


def _job_options(scheduler: str) -> tuple[str, ...]:
    """The options that jobs of a kind of cluster need."""
    engine = find_engine(scheduler)
    return engine.task_settings if engine is not None else ()


@asynccontextmanager
async def open_provisioner(
    settings: Settings, partition: Partition, options: ProvisionerOptions
) -> AsyncIterator[FolderProvisioner | None]:
    """The folder provisioner; None: no folders are provisioned.

    Args:
        settings: The configuration.
        partition: This machine's storage partition.
        options: The admin's options.

    Raises:
        InvalidInputError: An option is missing or invalid.
    """
    if options.by == "none":
        yield None
    elif options.by == "here":
        yield LocalFolderProvisioner(_local_mount(options))
    else:
        async with _open_remote_tasks(settings, partition, options) as tasks:
            yield RemoteFolderProvisioner(tasks.task(_settings(options)))


@asynccontextmanager
async def _open_remote_tasks(
    settings: Settings, partition: Partition, options: ProvisionerOptions
) -> AsyncIterator[RemoteTasks]:
    name = _cluster(settings, options)
    engine = make_orchestrator(name, settings.clusters[name], partition)
    try:
        yield require(engine.remote_tasks, engine, "do not run administrator tasks")
    finally:
        await engine.close()


def _settings(options: ProvisionerOptions) -> TaskSettings:
    return TaskSettings(options.mounted_at, options.queue, options.namespace, options.claim, options.image)


async def find_uid(user_name: str, settings: Settings, partition: Partition, options: ProvisionerOptions) -> int:
    """The uid of the cluster's user; `ROOT_UID` for ``none``.

    Args:
        user_name: The uid, or a name: resolved where folders are provisioned, which is impossible on Kubernetes.
        settings: The configuration.
        partition: This machine's storage partition.
        options: The folder provisioner.

    Raises:
        InvalidInputError: It is neither, or the name cannot be resolved.
        NotFoundError: The user does not exist.
    """
    if user_name == "none":
        return ROOT_UID
    detail = {"field": "cluster_user"}
    if user_name.isascii() and user_name.isdecimal():
        if not 0 < int(user_name) <= MAX_UID:
            raise InvalidInputError(
                f"the cluster user must be a user id from 1 on, not {user_name[:20]}",
                hint="root has access anyway",
                detail=detail,
            )
        return int(user_name)
    if not _USER.fullmatch(user_name):
        raise InvalidInputError(f"the cluster user must be a user id or a name, not '{user_name[:40]}'", detail=detail)
    number: int | None = None
    if options.by == "here":
        number = await asyncio.to_thread(users.find_uid, user_name)
    else:
        try:
            number = await _remote_uid(user_name, settings, partition, options)
        except UnsupportedError as error:
            raise InvalidInputError(
                f"the cluster user cannot be looked up: {error.message}",
                hint="give the user id; 'id -u NAME' on a node prints it",
                detail=detail,
            ) from error
    if not number:
        raise NotFoundError(
            f"user '{user_name}' not found" + (" on this machine" if options.by == "here" else ""),
            code="no_such_user",
            hint="give the user id; 'id -u NAME' on a node prints it",
            detail=detail,
        )
    return number


async def _remote_uid(name: str, settings: Settings, partition: Partition, options: ProvisionerOptions) -> int | None:
    if options.by == "none":
        raise UnsupportedError(f"the user id of '{name}' is unknown on this machine")
    async with _open_remote_tasks(settings, partition, options) as tasks:
        return await tasks.find_uid(name)


def _local_mount(options: ProvisionerOptions) -> Path:
    if not options.mounted_at:
        raise InvalidInputError(
            "the mount point of the whole file system on this machine is not given",
            hint="give it with --mounted-at, such as /fsx",
            detail={"field": "mounted_at"},
        )
    root = Path(options.mounted_at)
    if not root.is_dir():
        raise InvalidInputError(
            f"{root} is not a folder on this machine",
            hint="mount the whole file system there first",
            detail={"field": "mounted_at"},
        )
    return root


def _cluster(settings: Settings, options: ProvisionerOptions) -> str:
    """The name of the selected cluster.

    Raises:
        InvalidInputError: There is no cluster of this kind, or the choice is ambiguous.
    """
    clusters = {name: config for name, config in settings.clusters.items() if config.orchestrator == options.by}
    candidates = [
        name
        for name, config in clusters.items()
        if options.cluster is None or options.cluster in {name, config.hyperpod_cluster}
    ]
    if len(candidates) == 1:
        return candidates[0]
    description = f"for the HyperPod cluster {options.cluster}" if options.cluster else "that can be chosen"
    names = ", ".join(candidates or clusters) or "none"
    raise InvalidInputError(
        f"the configuration has {len(candidates) or 'no'} {options.by} cluster{'s' if candidates else ''} {description}",
        code="no_cluster_for_folders",
        hint=f'add hyperpod = "..." under [clusters.NAME], or choose a cluster with --cluster; configured: {names}',
        detail={"field": "cluster"},
    )


# --------------------------------------------------------------------------------------------------
# A reconciler with its folder provisioner; both are opened and closed together.


@asynccontextmanager
async def open_reconciler(
    services: Hyperpod, request: StorageRequest, on_progress: Callable[[int, int], None] | None = None
) -> AsyncIterator[Reconciler]:
    """The reconciler for a request.

    Args:
        services: The services, for their configuration.
        request: The request.
        on_progress: See `Reconciler`.

    Raises:
        InvalidInputError: A folder option is missing or invalid.
        NotFoundError: The user does not exist.
    """
    settings, options = services.settings, request.folders
    if options.user is not None:
        number = await find_uid(options.user, settings, services.partition, options)
        request = replace(request, wanted=replace(request.wanted, cluster_user=number))
    aws = Aws(request.region)
    if needs_mount_path(options.by) and options.mounted_at is None and request.cluster is not None:
        node_mount = await find_node_mount(aws, request.cluster, request.file_system)
        options = replace(options, mounted_at=node_mount)
    async with open_provisioner(settings, services.partition, options) as provisioner:
        yield Reconciler(aws, request, on_progress, provisioner)
