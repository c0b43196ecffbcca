"""Who looks at the folders of a file system and makes them, by what an admin says: this machine, or a job of a configured cluster."""

from __future__ import annotations

import asyncio
import pwd
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from hyperpod_jlab.admin.fsx.folders import FolderKeeper, FoldersHere, FoldersThere
from hyperpod_jlab.admin.fsx.models import MOST_UID, NOBODY
from hyperpod_jlab.admin.fsx.reconcile import Wirer, Wiring, mounted_on_nodes
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.config import KubernetesCluster, Settings, SlurmCluster
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.runs.facade import Hyperpod
from hyperpod_jlab.storage.partition import Partition, PathMap

By = Literal["here", "slurm", "kubernetes", "none"]

ON_NODES = "/fsx"
"""Where HyperPod's life cycle scripts mount the cluster's file system, if AWS tells of no other place."""

ANSWERS = ".hyperpod-folders"
"""The folder in which jobs leave their answers."""

_FITS: dict[str, tuple[By, ...]] = {
    "mounted_at": ("here", "slurm"),
    "queue": ("slurm",),
    "namespace": ("kubernetes",),
    "claim": ("kubernetes",),
    "image": ("kubernetes",),
}
"""What only some of them know."""

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
Config = TypeVar("Config", SlurmCluster, KubernetesCluster)


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


def misfit(place: FolderPlace) -> tuple[str, tuple[By, ...]] | None:
    """What is said that the one who looks after folders does not know, and who does; None: all fits.

    Args:
        place: What the admin says.
    """
    for name, known in _FITS.items():
        if getattr(place, name) is not None and place.by not in known:
            return name, known
    return None


@asynccontextmanager
async def open_keeper(
    settings: Settings, partition: Partition, place: FolderPlace
) -> AsyncIterator[FolderKeeper | None]:
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
    elif place.by == "slurm":
        from hyperpod_jlab.engines.slurm.ssh import transport_of

        config = _cluster(settings, place, SlurmCluster)
        transport = transport_of(config)
        try:
            yield slurm_keeper(SlurmClient(transport), config, partition, place)
        finally:
            await transport.close()
    else:
        from hyperpod_jlab.engines.kubernetes.api.cluster import Connection
        from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesErrand

        cluster = _cluster(settings, place, KubernetesCluster)
        storage = cluster.storage
        connection = Connection(cluster)
        claim = _given("claim", place.claim or (storage.claim if storage else None))
        image = _given("image", place.image or cluster.image)
        namespace = place.namespace or connection.namespace
        try:
            yield FoldersThere(KubernetesErrand(connection, namespace, claim, image))
        finally:
            await connection.close()


def slurm_keeper(
    client: SlurmClient, config: SlurmCluster, partition: Partition, place: FolderPlace
) -> FolderKeeper:
    """Folders by jobs of a Slurm cluster, whose answers are read where this machine or the login node has the file system.

    Raises:
        InvalidInputError: This machine runs Slurm's commands, and has nothing of the file system.
    """
    from hyperpod_jlab.engines.slurm.remote_task import SlurmErrand

    root = place.mounted_at or ON_NODES
    if not root.startswith("/"):
        raise InvalidInputError(
            f"'{root[:60]}', where the nodes have the file system, is no absolute path",
            detail={"field": "mounted_at"},
        )
    reply, answers = f"/{ANSWERS}", None
    if config.transport == "here":
        paths = PathMap.of(str(partition.root), config.storage)
        if paths.there.is_relative_to(root) and Path(paths.here).is_dir():
            reply = str(PurePosixPath("/") / paths.there.relative_to(root) / ANSWERS)
            answers = Path(paths.here) / ANSWERS
        elif Path(root).is_dir():
            answers = Path(root) / ANSWERS
        else:
            raise InvalidInputError(
                f"this machine has nothing of what nodes have at {root}, so an answer of theirs would not be seen",
                code="no_common_folder",
                hint="name its partition there as storage in the cluster's configuration, or go by ssh to a login node",
                detail={"field": "mounted_at"},
            )
    return FoldersThere(SlurmErrand(client, root, reply, answers, queue=place.queue))


async def user_number(given: str, settings: Settings, place: FolderPlace) -> int:
    """The number of the cluster's user; `NOBODY` for ``none``.

    Args:
        given: The number, or a name: known where folders are looked after, which for Kubernetes is nowhere.
        settings: The configuration.
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
                f"the cluster's user: {given[:20]} is no number of a user that could be let in",
                hint="root needs no leave; numbers begin with 1",
                detail=detail,
            )
        return int(given)
    if not _USER.fullmatch(given):
        raise InvalidInputError(
            f"the cluster's user: '{given[:40]}' is neither a user's number nor a name",
            detail=detail,
        )
    number: int | None = None
    if place.by == "here":
        number = await asyncio.to_thread(_number_here, given)
    elif place.by == "slurm":
        number = await _number_there(given, _cluster(settings, place, SlurmCluster))
    else:
        raise InvalidInputError(
            f"the cluster's user: nobody here knows the number of '{given}'",
            hint="give the number: on a node, 'id -u NAME' says it",
            detail=detail,
        )
    if not number:
        raise NotFoundError(
            f"there is no user '{given}'" + (" on this machine" if place.by == "here" else ""),
            code="no_such_user",
            hint="give the number: on a node, 'id -u NAME' says it",
            detail=detail,
        )
    return number


def _number_here(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


async def _number_there(name: str, config: SlurmCluster) -> int | None:
    """As the machine with Slurm's commands says."""
    from hyperpod_jlab.engines.slurm.ssh import transport_of

    if config.transport == "here":
        return await asyncio.to_thread(_number_here, name)
    transport = transport_of(config)
    try:
        output = await transport.run(["/usr/bin/id", "-u", "--", name])
    finally:
        await transport.close()
    said = output.out.strip()
    return int(said) if output.code == 0 and said.isdecimal() else None


def _here(place: FolderPlace) -> Path:
    root = Path(_given("mounted_at", place.mounted_at))
    if not root.is_dir():
        raise InvalidInputError(
            f"{root} is no folder of this machine",
            hint="mount the whole file system there first",
            detail={"field": "mounted_at"},
        )
    return root


def _given(field: str, value: str | None) -> str:
    if value:
        return value
    raise InvalidInputError(
        {
            "mounted_at": "nobody says where this machine has the whole file system",
            "claim": "nobody says which claim is of the whole file system",
            "image": "nobody says which image the pod is to have",
        }[field],
        hint={
            "mounted_at": "name the folder where it is mounted (--mounted-at), such as /fsx",
            "claim": "name the persistent volume claim (--claim) of the whole file system, here or as storage of the cluster in the configuration",
            "image": "name an image (--image) with a python3 by its digest, registry/name@sha256:..., here or in the cluster's configuration",
        }[field],
        detail={"field": field},
    )


def _cluster(settings: Settings, place: FolderPlace, kind: type[Config]) -> Config:
    """The cluster of the configuration that is meant.

    Raises:
        InvalidInputError: There is none of this kind, or it is not clear which.
    """
    found = {name: config for name, config in settings.clusters.items() if isinstance(config, kind)}
    chosen = found
    if place.cluster is not None:
        chosen = {
            name: config
            for name, config in found.items()
            if place.cluster in {name, config.hyperpod}
        }
    if len(chosen) == 1:
        return next(iter(chosen.values()))
    what = f"for the HyperPod cluster {place.cluster}" if place.cluster else "that could be meant"
    listed = ", ".join(chosen or found) or "none"
    raise InvalidInputError(
        f"the configuration has {len(chosen) or 'no'} {place.by} cluster{'s' if chosen else ''} {what}",
        code="no_cluster_for_folders",
        hint=f'add it with hyperpod = "..." under [clusters.NAME], or name one of several (--cluster); of this kind it has: {listed}',
        detail={"field": "cluster"},
    )


# --------------------------------------------------------------------------------------------------
# A wiring together with who looks after its folders, opened and closed with it.


@asynccontextmanager
async def open_wirer(
    services: Hyperpod,
    wiring: Wiring,
    region: str | None,
    place: FolderPlace,
    told: Callable[[int, int], None] | None = None,
) -> AsyncIterator[Wirer]:
    """Who plans and applies a wiring.

    Args:
        services: The services, for their configuration.
        wiring: What is wanted.
        region: The domain's region; None: see `aws.session.Aws`.
        place: Who looks after folders, and the cluster's user.
        told: See `Wirer`.

    Raises:
        InvalidInputError: Something is missing or wrong in what is said of folders.
        NotFoundError: There is no such user.
    """
    settings = services.settings
    if place.user is not None:
        number = await user_number(place.user, settings, place)
        wiring = replace(wiring, wanted=replace(wiring.wanted, cluster_user=number))
    aws = Aws(region)
    if place.by == "slurm" and place.mounted_at is None and wiring.cluster is not None:
        where = await mounted_on_nodes(aws, wiring.cluster, wiring.file_system)
        place = replace(place, mounted_at=where)
    async with open_keeper(settings, services.partition, place) as keeper:
        yield Wirer(aws, wiring, told, keeper)
