"""Whether a file system is mounted on this machine, as a whole, where somebody says it is: else folders would be made on the machine's own disk."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from hyperpod_jlab.admin.there import FileSystem
from hyperpod_jlab.model.errors import RefusedError
from hyperpod_jlab.storage.mounts import Mount, mount_of

_SOURCE = re.compile(r"[^/]+:/(?P<name>[^/]+)/?")
"""What is mounted of Lustre: servers and mount name, and behind them the folder where it is not the whole."""


def check_mounted(root: Path, wanted: FileSystem) -> None:
    """Refuse a folder at which the file system is not mounted. May block.

    Args:
        root: The folder.
        wanted: The file system.

    Raises:
        RefusedError: Nothing is mounted there, something else, or only a part of it.
    """
    with contextlib.suppress(OSError):  # what is mounted on demand (autofs) is so by being opened
        os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY))
    said = _otherwise(mount_of(root), root.resolve(), wanted.mount_name)
    if said is not None:
        raise RefusedError(
            f"the file system {wanted.name} is not mounted at {root}: {said}",
            code="not_mounted",
            hint="mount the whole of it there first, or name where it is (--mounted-at): "
            f"'findmnt -t lustre' lists what is mounted; its mount name is {wanted.mount_name}",
            detail={"field": "mounted_at"},
        )


def _otherwise(mount: Mount, place: Path, name: str | None) -> str | None:
    """What is there in its place; None: nothing else is."""
    if Path(mount.point) != place:
        return "this is a folder of what is mounted at " + mount.point
    if mount.kind != "lustre":
        return f"what is mounted there is {mount.kind}, not Lustre"
    source = _SOURCE.fullmatch(mount.source or "")
    if source is None or mount.inner != "/":
        return "only a folder of a file system is mounted there"
    if name not in {None, source["name"]}:
        return f"what is mounted there has the mount name {source['name']}"
    return None
