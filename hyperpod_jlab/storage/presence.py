"""Whether the partition's file system is mounted, where it was before.

Without it there is an empty folder at its path: runs would seem to be gone, and new ones would be written onto this machine's disk, to be hidden when it
is mounted again. So where a partition was mounted is noted in the user's cache directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.storage.mounts import all_mounts

GONE = "storage_gone"
"""Code of the error that the file system is not mounted now."""


class Presence:
    """Sees for one process that a partition is there.

    Args:
        root: The partition's root.
        ours: A folder of ours on it, which is there once it was used.
    """

    def __init__(self, root: Path, ours: Path) -> None:
        self._root, self._ours = root, ours
        self._noted = False

    def check(self) -> None:
        """Note where it is mounted, the first time that it is there, and refuse it when it has gone since. May block.

        Raises:
            StorageError: With code ``storage_gone``.
        """
        check_present(self._root)
        with contextlib.suppress(OSError):  # a folder that is closed is told where it is needed
            if not self._noted and self._ours.is_dir():
                self._noted = True
                note_present(self._root)


def own_cache() -> Path | None:
    """Our folder in the user's cache directory, else a temporary one of the user's own; None when neither will do."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    fallback = Path(tempfile.gettempdir()) / f"hyperpod-jlab-{os.getuid()}"
    for folder in (Path(base) / "hyperpod-jlab", fallback):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                return folder
    return None


def note_present(root: Path) -> None:
    """Note where the file system of a partition is mounted, which is there now."""
    note, points = _note(root), _mount_points()
    point = max((point for point in points if root.is_relative_to(point)), key=len, default="/")
    if note is None or point == "/":
        return
    with contextlib.suppress(OSError):  # it is only missed when the mount is
        if not note.is_file() or note.read_text() != point:
            note.write_text(point)


def check_present(root: Path) -> None:
    """Refuse a partition whose file system is not mounted, and was before.

    Raises:
        StorageError: With code ``storage_gone``.
    """
    note = _note(root)
    try:
        point = note.read_text() if note is not None else ""
    except OSError:
        return
    points = _mount_points()
    if not point or not points or point in points or not root.is_relative_to(point):
        return
    raise StorageError(
        f"the storage partition {root} is not there: nothing is mounted at {point} now",
        code=GONE,
        hint=f"mount it again, or restart the space; if it is a folder of this machine from now on, remove {note}",
        detail={"path": str(root), "mount": point},
    )


def _note(root: Path) -> Path | None:
    folder = own_cache()
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return None if folder is None else folder / f"mount-{name}"


def _mount_points() -> set[str]:
    try:
        return {mount.point for mount in all_mounts()}
    except OSError:  # no Linux
        return set()
