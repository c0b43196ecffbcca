"""A link in the home folder to the storage partition, so that it can be opened in Jupyter's file browser, which shows the home folder only.

Ours is a symbolic link that holds the partition's path to the letter. Anything else of the same name is somebody else's, and stays.
"""

from __future__ import annotations

import os
from pathlib import Path

from hyperpod_jlab.core.errors import ConflictError, InvalidInputError, NotFoundError
from hyperpod_jlab.storage.files import storage_errors

NAME = "hyperpod-partition"
"""Its name, when none is given."""


def make_link(home: Path, root: Path, name: str = NAME) -> bool:
    """Make the link; returns whether it was not there before.

    Args:
        home: The home folder.
        root: The partition.
        name: The link's name.

    Raises:
        InvalidInputError: The name is none for a link that the file browser shows, or the home folder is the partition.
        ConflictError: Something else has the name.
        StorageError: The home folder cannot be written.
    """
    path = _path(home, name)
    with storage_errors(path):
        if root.exists() and home.exists() and root.samefile(home):
            raise InvalidInputError(
                f"the home folder {home} is the storage partition, so no link is needed",
                code="home_is_partition",
            )
        try:
            path.symlink_to(root)
        except FileExistsError:
            _check(path, root)
            return False
    return True


def remove_link(home: Path, root: Path, name: str = NAME) -> None:
    """Remove the link; what it leads to stays.

    Raises:
        InvalidInputError: The name can be none of a link of ours.
        NotFoundError: There is nothing of that name.
        ConflictError: Something else has the name.
        StorageError: The home folder cannot be written.
    """
    path = _path(home, name)
    with storage_errors(path):
        if not os.path.lexists(path):
            raise NotFoundError(f"there is no {path}", detail={"path": str(path)})
        _check(path, root)
        path.unlink()


def _check(path: Path, root: Path) -> None:
    """Refuse what is not our link."""
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
