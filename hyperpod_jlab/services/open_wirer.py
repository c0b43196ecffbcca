"""A wiring together with who looks after its folders, opened and closed with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from hyperpod_jlab.admin.wiring import Wirer, Wiring, mounted_on_nodes
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.services.folder_keepers import FolderPlace, open_keeper, user_number
from hyperpod_jlab.services.hyperpod import Hyperpod


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
