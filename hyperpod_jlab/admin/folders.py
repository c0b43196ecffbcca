"""Folders of a file system where it is mounted as a whole: looked at, made, and given to whom they belong.

Each step of a path is opened by itself and never through a symbolic link: what users can write lies beside what an admin makes here as root.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from hyperpod_jlab.admin.there import Folder
from hyperpod_jlab.model.errors import RefusedError, StorageDeniedError, StorageError

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CLOSED = 0o700


class Folders:
    """Folders below a mount point.

    Args:
        root: Where the whole file system is mounted.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """Owners and modes of folders; None where there is none.

        Args:
            paths: Their paths on the file system, such as ``/alice``.

        Raises:
            RefusedError: Something of that name is no folder.
            StorageError: It cannot be looked at.
        """
        return {path: self._look(path) for path in paths}

    def make(self, path: str, folder: Folder) -> None:
        """Make a folder, or set the owner and mode of one that is there. What lies in it is left as it is.

        Raises:
            RefusedError: Something of that name is no folder.
            StorageDeniedError: This user may not; to give a folder to somebody else takes root.
            StorageError: It cannot be done.
        """
        with _errors(path), self._parent(path) as (parent, name):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, _CLOSED, dir_fd=parent)
            opened = os.open(name, _OPEN, dir_fd=parent)
            try:
                # First the owner: a change of it takes the bits for user and group away.
                os.fchown(opened, folder.uid, folder.gid)
                os.fchmod(opened, folder.mode)
            finally:
                os.close(opened)

    def _look(self, path: str) -> Folder | None:
        with _errors(path):
            try:
                with self._parent(path) as (parent, name):
                    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return None
        if not stat.S_ISDIR(found.st_mode):
            raise _no_folder(path)
        return Folder(found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder above, opened, and the last name."""
        *above, name = _names(path)
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for one in above:
                following = os.open(one, _OPEN, dir_fd=at)
                os.close(at)
                at = following
            yield at, name
        finally:
            os.close(at)


def _names(path: str) -> list[str]:
    """The names in a path.

    Raises:
        RefusedError: It is none, or leads out of the file system.
    """
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or not names or {".", ".."} & set(names) or "\0" in path:
        raise RefusedError(
            f"'{path[:60]}' is no folder of a file system",
            code="no_path",
            hint="it begins with a slash, such as /shared",
        )
    return names


def _no_folder(path: str) -> RefusedError:
    return RefusedError(
        f"{path} is there on the file system, and is no folder",
        code="no_folder",
        hint="see what it is, and move it away",
    )


@contextlib.contextmanager
def _errors(path: str) -> Iterator[None]:
    """What the system says as errors of ours."""
    try:
        yield
    except (NotADirectoryError, FileExistsError) as error:
        raise _no_folder(path) from error
    except PermissionError as error:
        raise StorageDeniedError(
            f"{path}: {error.strerror}",
            hint="run this as root where the file system is mounted without root squash",
        ) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:  # a symbolic link where a folder is to be
            raise _no_folder(path) from error
        raise StorageError(f"{path}: {error.strerror}") from error
