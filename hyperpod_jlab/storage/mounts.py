"""Which file systems are mounted, which one a path lies on, and how much room it has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")

_NETWORK = ("lustre", "nfs", "efs", "fuse.sshfs", "fuse.s3", "ceph", "beegfs", "gpfs", "cifs", "9p")
"""Beginnings of the kinds of file systems that are somewhere else."""

VARIABLE = "HYPERPOD_MOUNT_TABLE"
"""Environment variable that names another table, for demos and tests: nobody has Lustre at hand."""


@dataclass(frozen=True)
class Mount:
    """A mounted file system: where, its kind, what was mounted, whether it can only be read, the file system's own options, and its folder (of a bind mount).

    Kind and source are None where the system does not tell.
    """

    point: str
    kind: str | None = None
    source: str | None = None
    read_only: bool = False
    options: tuple[str, ...] = ()
    inner: str = "/"

    @property
    def network(self) -> bool:
        """Whether other machines can mount the same file system, going by its kind."""
        return (self.kind or "").startswith(_NETWORK)


@dataclass(frozen=True)
class Room:
    """Bytes of a file system, and the files that may still be made (None: it does not count them)."""

    total: int
    free: int
    files_free: int | None


def nearest_existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def all_mounts(table: Path | None = None) -> list[Mount]:
    """All mounted file systems, in the order in which they were mounted.

    Args:
        table: The table, in the form of ``/proc/self/mountinfo``; default: what ``$HYPERPOD_MOUNT_TABLE`` names, else that.

    Raises:
        OSError: There is no table: this is no Linux.
    """
    lines = (
        (table or Path(os.environ.get(VARIABLE) or _TABLE))
        .read_text(errors="surrogateescape")
        .splitlines()
    )
    return [_parse(line) for line in lines]


def mount_of(path: Path) -> Mount:
    """The file system that a path lies on, or would lie on."""
    place = nearest_existing(path.absolute()).resolve()
    try:
        mounts = all_mounts()
    except OSError:  # no Linux
        return Mount(str(next(folder for folder in (place, *place.parents) if folder.is_mount())))
    best = Mount("/")
    for mount in mounts:
        # A later line covers an earlier one at the same point.
        if place.is_relative_to(mount.point) and len(mount.point) >= len(best.point):
            best = mount
    return best


def room_at(path: Path) -> Room:
    """How much room a path's file system has."""
    found = os.statvfs(nearest_existing(path.absolute()))
    return Room(
        total=found.f_blocks * found.f_frsize,
        free=found.f_bavail * found.f_frsize,
        files_free=found.f_favail if found.f_files else None,
    )


def _parse(line: str) -> Mount:
    """One line of mountinfo: proc(5), fields 4 to 6, and behind the hyphen kind, source and the file system's options."""
    before, _, behind = line.partition(" - ")
    fields, (kind, source, *rest) = before.split(" "), behind.split(" ")
    options = tuple(rest[0].split(",")) if rest else ()
    # A bind mount can be read-only on a file system that is not, and the other way round.
    read_only = "ro" in fields[5].split(",") or "ro" in options
    return Mount(_plain(fields[4]), kind, _plain(source), read_only, options, _plain(fields[3]))


def _plain(text: str) -> str:
    """Undo the kernel's octal escapes of blanks, tabs, line breaks and backslashes."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
