"""Which folder is the storage partition that runs go to, and why that one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.aws.lustre import LustreMount, lustre_mounts
from hyperpod_jlab.model.config import Settings
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.services.shared_space import shared_space, whose_private
from hyperpod_jlab.storage.mounts import Mount, all_mounts
from hyperpod_jlab.storage.partition import Partition

STUDIO_MOUNT = Path("/mnt/custom-file-systems/fsx_lustre")
"""Where Studio mounts FSx for Lustre file systems, each in a folder of its own."""

_NAME_ONE = "name another one as path under [storage] in the configuration"


@dataclass(frozen=True)
class Choice:
    """The partition, who chose it, and what is to be known of what was not chosen."""

    partition: Partition
    by: str
    notes: tuple[str, ...] = ()


def choose_partition(settings: Settings) -> Choice:
    """The storage partition: the configured one, else a mount of Studio, else a folder in the user's data directory.

    Of several mounts the first by name is taken that can be written; in a shared space none that is a user profile's own.

    Raises:
        InvalidInputError: The configured path is not absolute.
    """
    shared = settings.storage.shared
    if settings.storage.path is not None:
        root = Path(settings.storage.path).expanduser()
        if not root.is_absolute():
            raise InvalidInputError(
                f"storage.path: {settings.storage.path} is no absolute path",
                code="invalid_config",
                hint="write the whole path",
                detail={"field": "storage.path"},
            )
        return Choice(_partition(root, shared), "the configuration")
    mounts = _studio_mounts()
    if not mounts:
        return Choice(_partition(_data_folder(), shared), "default")
    closed = _closed(mounts)
    notes = [f"{path} is not offered in this shared space: {why}" for path, why in closed.items()]
    offered = [path for path in mounts if path not in closed]
    if not offered:
        notes.append(f"runs go to a folder of this machine, which no cluster sees: {_NAME_ONE}")
        return Choice(_partition(_data_folder(), shared), "default", tuple(notes))
    chosen = min(offered, key=lambda path: (mounts[path].read_only, path))
    if len(offered) > 1:
        others = ", ".join(str(path) for path in offered if path != chosen)
        notes.append(f"runs go to {chosen}, though {others} is mounted too: {_NAME_ONE}")
    return Choice(_partition(chosen, shared), "Studio's mount", tuple(notes))


def _partition(root: Path, shared: bool) -> Partition:
    return Partition(Path(os.path.normpath(root)), shared=shared)


def _studio_mounts() -> dict[Path, Mount]:
    """By the table of mounts: to look at a mount whose server is gone can take for ever."""
    try:
        found = {Path(mount.point): mount for mount in all_mounts()}
    except OSError:  # no Linux
        return {}
    return {point: found[point] for point in sorted(found) if point.parent == STUDIO_MOUNT}


def _closed(mounts: Iterable[Path]) -> dict[Path, str]:
    """Those of the mounts that are not for everybody in this space, and why."""
    if shared_space() is None:
        return {}
    lustre: dict[Path, LustreMount] = {mount.point: mount for mount in lustre_mounts()}
    reasons = {path: whose_private(lustre[path]) for path in mounts if path in lustre}
    return {path: why for path, why in reasons.items() if why is not None}


def _data_folder() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()
    return Path(home) / "hyperpod-jlab" / "partition"
