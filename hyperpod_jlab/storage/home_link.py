"""A link in the home folder to the storage partition, since Jupyter's file browser only shows the home folder.

Our link is a symbolic link with exactly the partition's path. Anything else of the same name is not ours, and stays.
"""

from __future__ import annotations

import os
from pathlib import Path

from hyperpod_jlab.core.errors import ConflictError, InvalidInputError, NotFoundError
from hyperpod_jlab.storage.files import storage_errors

NAME = "hyperpod-partition"
"""Its default name."""


def make_link(home: Path, root: Path, name: str = NAME) -> bool:
    """Create the link; returns whether it is new.

    Args:
        home: The home folder.
        root: The partition.
        name: The link's name.

    Raises:
        InvalidInputError: The name is invalid or hidden in the file browser, or the home folder is the partition.
        ConflictError: Something else has the name.
        StorageError: The home folder is not writable.
    """
    path = _path(home, name)
    with storage_errors(path):
        if root.exists() and home.exists() and root.samefile(home):
            raise InvalidInputError(
                f"the home folder {home} is the storage partition, so no link is needed", code="home_is_partition"
            )
        try:
            path.symlink_to(root)
        except FileExistsError:
            _check(path, root)
            return False
    return True


def remove_link(home: Path, root: Path, name: str = NAME) -> None:
    """Remove the link; its target stays.

    Raises:
        InvalidInputError: The name cannot be that of our link.
        NotFoundError: The link does not exist.
        ConflictError: Something else has the name.
        StorageError: The home folder is not writable.
    """
    path = _path(home, name)
    with storage_errors(path):
        if not os.path.lexists(path):
            raise NotFoundError(f"there is no {path}", detail={"path": str(path)})
        _check(path, root)
        path.unlink()


def _check(path: Path, root: Path) -> None:
    """Refuse anything that is not our link."""
    if path.is_symlink():
        target = path.readlink()
        if str(target) == str(root):
            return
        problem = f"{path} is a link to {target}, not to the storage partition {root}"
    else:
        problem = f"{path} is a {'folder' if path.is_dir() else 'file'}, not a link"
    raise ConflictError(
        f"{problem}; it was not changed",
        code="not_our_link",
        hint="use another name for the link, or move this file yourself",
        detail={"path": str(path)},
    )


def _path(home: Path, name: str) -> Path:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise InvalidInputError(
            f"'{name}' is not a valid name of the link",
            code="invalid_name",
            hint="use a name without a slash that does not start with a dot; the file browser hides such names",
            detail={"field": "name"},
        )
    return home / name
