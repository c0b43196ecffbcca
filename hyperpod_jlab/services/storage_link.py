"""A link to the partition where a file browser shows it, made only where nobody gets at what is somebody else's by it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.model.errors import DeniedError
from hyperpod_jlab.services.storage import Storage
from hyperpod_jlab.storage.home_link import NAME, make_link
from hyperpod_jlab.storage.partition import Partition


@dataclass(frozen=True)
class Linked:
    """The partition in a file browser's folder: by a link, or as a folder that lies there itself.

    Attributes:
        path: What to open.
        partition: The partition's root.
        made: Whether the link was not there before.
    """

    path: Path
    partition: Path
    made: bool


async def link_partition(
    storage: Storage, partition: Partition, folder: Path, name: str = NAME
) -> Linked:
    """Make a link to the partition.

    Args:
        storage: Tells whether it is offered here.
        partition: The partition.
        folder: The folder that the file browser shows.
        name: The link's name.

    Raises:
        DeniedError: It is the private partition of a user profile, and this space is shared.
        InvalidInputError: The name is none for a link, or the folder is the partition itself.
        ConflictError: Something else has the name.
        StorageError: The partition is not there, or the folder cannot be written.
    """
    place = (await storage.overview()).partition
    if not place.offered:
        raise DeniedError(
            f"{place.path} is the private partition of {place.private_of}, and everybody in this shared space would get at it by the link",
            code="private_partition",
            hint="name another folder as path under [storage] in the configuration",
            detail={"path": place.path},
        )

    def work() -> Linked:
        partition.prepare()
        return Linked(folder / name, partition.root, make_link(folder, partition.root, name))

    return await asyncio.to_thread(work)
