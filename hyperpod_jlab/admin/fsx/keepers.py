"""Who looks at the folders of a file system and makes them, by what an admin says: this machine, or a job of a configured cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from hyperpod_jlab.admin.fsx.folders import FolderProvisioner, FoldersHere, FoldersThere
from hyperpod_jlab.admin.fsx.models import MOST_UID, NOBODY
from hyperpod_jlab.admin.fsx.reconcile import Reconciler, StorageRequest, mounted_on_nodes
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.config import SchedulerName, Settings
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnsupportedError
from hyperpod_jlab.engines.protocol import required
from hyperpod_jlab.engines.registry import kind_of, make_orchestrator
from hyperpod_jlab.engines.remote_task import RemoteTasks, TaskSettings
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage import owners as users
from hyperpod_jlab.storage.partition import Partition

By = Literal["here", SchedulerName, "none"]
"""Who looks after folders: this machine, jobs of a cluster, or nobody."""

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class FolderPlace:
    """What an admin says of who is to look after folders.

    Attributes:
        by: Who.
        mounted_at: Where the whole file system is mounted: on this machine, or on the nodes.
        cluster: The cluster: its name in the configuration, or the HyperPod cluster behind it; None: the only one of its kind.
        queue: The Slurm partition of the jobs.
        namespace: The namespace of the claim; default: the cluster's of the configuration.
        claim: The claim of the whole file system; default: the same.
        image: The pods' image by its digest; default: the same.
        user: The user of the cluster's jobs, by number or name, ``none`` for nobody; None: who is let in already stays so.
    """

    by: By = "none"
    mounted_at: str | None = None
    cluster: str | None = None
    queue: str | None = None
    namespace: str | None = None
    claim: str | None = None
    image: str | None = None
    user: str | None = None


def misfit(place: FolderPlace) -> tuple[str, tuple[str, ...]] | None:
    """What is said that the one who looks after folders does not know, and who does; None: all fits.

    Args:
        place: What the admin says.
    """
    fits = {"here": ("mounted_at",)} | {name: _known_to(name) for name in get_args(SchedulerName)}
    for name, value in asdict(_settings(place)).items():
        known = tuple(by for by, names in fits.items() if name in names)
        if value is not None and place.by not in known:
            return name, known
    return None


def knows_mount(by: By) -> bool:
    """Whether it is jobs of a cluster that have to be told where their nodes mount the file system."""
    return "mounted_at" in _known_to(by)


def _known_to(by: str) -> tuple[str, ...]:
    """What the jobs of a kind of cluster have to be told."""
    kind = kind_of(by)
    return kind.task_settings if kind is not None else ()


@asynccontextmanager
async def open_keeper(
    settings: Settings, partition: Partition, place: FolderPlace
) -> AsyncIterator[FolderProvisioner | None]:
    """Who looks after folders; None: nobody.

    Args:
        settings: The configuration.
        partition: This machine's storage partition.
        place: What the admin says.

    Raises:
        InvalidInputError: Something is missing or wrong in it.
    """
    if place.by == "none":
        yield None
    elif place.by == "here":
        yield FoldersHere(_here(place))
    else:
        async with _tasks(settings, partition, place) as tasks:
            yield FoldersThere(tasks.task(_settings(place)))


@asynccontextmanager
async def _tasks(
    settings: Settings, partition: Partition, place: FolderPlace
) -> AsyncIterator[RemoteTasks]:
    name = _cluster(settings, place)
    engine = make_orchestrator(name, settings.clusters[name], partition)
    try:
        yield required(engine.remote_tasks, engine, "do not run administrator tasks")
    finally:
        await engine.close()


def _settings(place: FolderPlace) -> TaskSettings:
    return TaskSettings(place.mounted_at, place.queue, place.namespace, place.claim, place.image)


async def find_uid(given: str, settings: Settings, partition: Partition, place: FolderPlace) -> int:
    """The number of the cluster's user; `NOBODY` for ``none``.

    Args:
        given: The number, or a name: known where folders are looked after, which for Kubernetes is nowhere.
        settings: The configuration.
        partition: This machine's storage partition.
        place: Who looks after folders.

    Raises:
        InvalidInputError: It is neither, or nobody can say whose number it is.
        NotFoundError: There is no such user.
    """
    if given == "none":
        return NOBODY
    detail = {"field": "cluster_user"}
    if given.isascii() and given.isdecimal():
        if not 0 < int(given) <= MOST_UID:
            raise InvalidInputError(
                f"the cluster user must be a user id from 1 on, not {given[:20]}",
                hint="root has access anyway",
                detail=detail,
            )
        return int(given)
    if not _USER.fullmatch(given):
        raise InvalidInputError(
            f"the cluster user must be a user id or a name, not '{given[:40]}'",
            detail=detail,
        )
    number: int | None = None
    if place.by == "here":
        number = await asyncio.to_thread(users.find_uid, given)
    else:
        try:
            number = await _number_there(given, settings, partition, place)
        except UnsupportedError as error:
            raise InvalidInputError(
                f"the cluster user cannot be looked up: {error.message}",
                hint="give the user id; 'id -u NAME' on a node prints it",
                detail=detail,
            ) from error
    if not number:
        raise NotFoundError(
            f"user '{given}' not found" + (" on this machine" if place.by == "here" else ""),
            code="no_such_user",
            hint="give the user id; 'id -u NAME' on a node prints it",
            detail=detail,
        )
    return number


async def _number_there(
    name: str, settings: Settings, partition: Partition, place: FolderPlace
) -> int | None:
    if place.by == "none":
        raise UnsupportedError(f"the user id of '{name}' is unknown on this machine")
    async with _tasks(settings, partition, place) as tasks:
        return await tasks.user_number(name)


def _here(place: FolderPlace) -> Path:
    if not place.mounted_at:
        raise InvalidInputError(
            "the mount point of the whole file system on this machine is not given",
            hint="give it with --mounted-at, such as /fsx",
            detail={"field": "mounted_at"},
        )
    root = Path(place.mounted_at)
    if not root.is_dir():
        raise InvalidInputError(
            f"{root} is not a folder on this machine",
            hint="mount the whole file system there first",
            detail={"field": "mounted_at"},
        )
    return root


def _cluster(settings: Settings, place: FolderPlace) -> str:
    """The name of the cluster that is meant.

    Raises:
        InvalidInputError: There is none of this kind, or it is not clear which.
    """
    found = {
        name: config
        for name, config in settings.clusters.items()
        if config.orchestrator == place.by
    }
    chosen = [
        name
        for name, config in found.items()
        if place.cluster is None or place.cluster in {name, config.hyperpod_cluster}
    ]
    if len(chosen) == 1:
        return chosen[0]
    what = f"for the HyperPod cluster {place.cluster}" if place.cluster else "that can be chosen"
    listed = ", ".join(chosen or found) or "none"
    raise InvalidInputError(
        f"the configuration has {len(chosen) or 'no'} {place.by} cluster{'s' if chosen else ''} {what}",
        code="no_cluster_for_folders",
        hint=f'add hyperpod = "..." under [clusters.NAME], or choose a cluster with --cluster; configured: {listed}',
        detail={"field": "cluster"},
    )


# --------------------------------------------------------------------------------------------------
# A wiring together with who looks after its folders, opened and closed with it.


@asynccontextmanager
async def open_reconciler(
    services: Hyperpod,
    wiring: StorageRequest,
    region: str | None,
    place: FolderPlace,
    told: Callable[[int, int], None] | None = None,
) -> AsyncIterator[Reconciler]:
    """Who plans and applies a wiring.

    Args:
        services: The services, for their configuration.
        wiring: What is wanted.
        region: The domain's region; None: see `aws.session.Aws`.
        place: Who looks after folders, and the cluster's user.
        told: See `Reconciler`.

    Raises:
        InvalidInputError: Something is missing or wrong in what is said of folders.
        NotFoundError: There is no such user.
    """
    settings = services.settings
    if place.user is not None:
        number = await find_uid(place.user, settings, services.partition, place)
        wiring = replace(wiring, wanted=replace(wiring.wanted, cluster_user=number))
    aws = Aws(region)
    if knows_mount(place.by) and place.mounted_at is None and wiring.cluster is not None:
        where = await mounted_on_nodes(aws, wiring.cluster, wiring.file_system)
        place = replace(place, mounted_at=where)
    async with open_keeper(settings, services.partition, place) as keeper:
        yield Reconciler(aws, wiring, told, keeper)
