"""Mounted file systems: which one a path is on, and its disk usage."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.core.errors import StorageError

_TABLE = Path("/proc/self/mountinfo")

_NETWORK = ("lustre", "nfs", "efs", "fuse.sshfs", "fuse.s3", "ceph", "beegfs", "gpfs", "cifs", "9p")
"""Type prefixes of network file systems."""

VARIABLE = "HYPERPOD_MOUNT_TABLE"
"""Environment variable with another mount table, for demos and tests without Lustre."""


@dataclass(frozen=True)
class Mount:
    """A mounted file system: mount point, type, source, whether it is read-only, its own options, and its folder (for a bind mount).

    Type and source are None if the system does not report them.
    """

    point: str
    kind: str | None = None
    source: str | None = None
    read_only: bool = False
    options: tuple[str, ...] = ()
    subpath: str = "/"

    @property
    def network(self) -> bool:
        """Whether other machines can mount the same file system, by its type."""
        return (self.kind or "").startswith(_NETWORK)


@dataclass(frozen=True)
class DiskSpace:
    """Disk usage in bytes, and the number of files that can still be created (None: not counted)."""

    total: int
    free: int
    files_free: int | None


def nearest_existing(path: Path) -> Path:
    """The path, or its nearest existing parent."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def all_mounts(table: Path | None = None) -> list[Mount]:
    """All mounted file systems, in mount order.

    Args:
        table: The table, in the format of ``/proc/self/mountinfo``; default: ``$HYPERPOD_MOUNT_TABLE``, else that file.

    Raises:
        OSError: There is no table: this is not Linux.
    """
    lines = (table or Path(os.environ.get(VARIABLE) or _TABLE)).read_text(errors="surrogateescape").splitlines()
    return [_parse(line) for line in lines]


def mount_of(path: Path) -> Mount:
    """The file system that a path is on, or would be on."""
    resolved = nearest_existing(path.absolute()).resolve()
    try:
        mounts = all_mounts()
    except OSError:  # not Linux
        return Mount(str(next(folder for folder in (resolved, *resolved.parents) if folder.is_mount())))
    best_mount = Mount("/")
    for mount in mounts:
        # A later line covers an earlier one with the same mount point.
        if resolved.is_relative_to(mount.point) and len(mount.point) >= len(best_mount.point):
            best_mount = mount
    return best_mount


def disk_space(path: Path) -> DiskSpace:
    """The disk usage of a path's file system."""
    status = os.statvfs(nearest_existing(path.absolute()))
    return DiskSpace(
        total=status.f_blocks * status.f_frsize,
        free=status.f_bavail * status.f_frsize,
        files_free=status.f_favail if status.f_files else None,
    )


def _parse(line: str) -> Mount:
    """Parse a line of mountinfo: proc(5), fields 4 to 6, and after the hyphen type, source and the file system's options."""
    left_part, _, right_part = line.partition(" - ")
    fields, (kind, source, *rest) = left_part.split(" "), right_part.split(" ")
    options = tuple(rest[0].split(",")) if rest else ()
    # A bind mount can be read-only on a writable file system, and vice versa.
    read_only = "ro" in fields[5].split(",") or "ro" in options
    return Mount(_unescape(fields[4]), kind, _unescape(source), read_only, options, _unescape(fields[3]))


def _unescape(text: str) -> str:
    """Undo the kernel's octal escapes of blanks, tabs, line breaks and backslashes."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


# --------------------------------------------------------------------------------------------------
# Whether the partition's file system is still mounted.
#
# Without the mount its path is an empty folder: runs would seem to be gone, and new ones would be
# written to the local disk, hidden by the next mount.
# So the mount point of a partition is recorded in the user's cache directory.

GONE_CODE = "storage_gone"
"""Error code: the file system is not mounted."""


class PresenceGuard:
    """Checks, for one process, that a partition is mounted.

    Args:
        root: The partition's root.
        own_folder: Our folder on it, which exists once it was used.
    """

    def __init__(self, root: Path, own_folder: Path) -> None:
        self._root, self._own_folder = root, own_folder
        self._is_remembered = False

    def check(self) -> None:
        """Record the mount point on first use, and raise if it is no longer mounted. May block.

        Raises:
            StorageError: With code ``storage_gone``.
        """
        check_present(self._root)
        with contextlib.suppress(OSError):  # an inaccessible folder is reported where it is needed
            if not self._is_remembered and self._own_folder.is_dir():
                self._is_remembered = True
                note_present(self._root)


def own_cache_folder() -> Path | None:
    """Our folder in the user's cache directory, else a temporary one of the user; None if neither is usable."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    fallback = Path(tempfile.gettempdir()) / f"hyperpod-jlab-{os.getuid()}"
    for folder in (Path(base) / "hyperpod-jlab", fallback):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                return folder
    return None


def note_present(root: Path) -> None:
    """Record the mount point of a partition's file system."""
    note, points = _remember(root), _mount_points()
    point = max((point for point in points if root.is_relative_to(point)), key=len, default="/")
    if note is None or point == "/":
        return
    with contextlib.suppress(OSError):  # it only matters once the mount is gone
        if not note.is_file() or note.read_text() != point:
            note.write_text(point)


def check_present(root: Path) -> None:
    """Raise if a partition's file system was mounted before, but is not now.

    Raises:
        StorageError: With code ``storage_gone``.
    """
    note = _remember(root)
    try:
        point = note.read_text() if note is not None else ""
    except OSError:
        return
    points = _mount_points()
    if not point or not points or point in points or not root.is_relative_to(point):
        return
    raise StorageError(
        f"the storage partition {root} is not available: no file system is mounted at {point}",
        code=GONE_CODE,
        hint=f"mount it again or restart the space; if it is now a folder of this machine, delete {note}",
        detail={"path": str(root), "mount": point},
    )


def _remember(root: Path) -> Path | None:
    folder = own_cache_folder()
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return None if folder is None else folder / f"mount-{name}"


def _mount_points() -> set[str]:
    try:
        return {mount.point for mount in all_mounts()}
    except OSError:  # not Linux
        return set()
