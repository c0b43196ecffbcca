"""What stands in a bundle's files and folders, and how much of another user's is looked at: it may be anything."""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.content import DIGEST


class Budget:
    """How much of another user's bundle is read at most: it must not cost more than it tells."""

    def __init__(self) -> None:
        self._steps = 8192
        self._bytes = 16 << 20

    @property
    def is_spent(self) -> bool:
        """Whether no more may be read."""
        return self._steps <= 0 or self._bytes <= 0

    def spend(self, size: int) -> bool:
        """Count one step and some bytes; False: no more may be read."""
        self._steps -= 1
        self._bytes -= size
        return not self.is_spent


def is_command_item(item: object) -> bool:
    """Whether it is an item of a command, as docs/bundle-format.md has them."""
    if isinstance(item, dict):
        return item == {"python": True} or (
            list(item) == ["bundle"] and is_inner_path(item["bundle"])
        )
    return isinstance(item, str)


def is_inner_path(path: object) -> TypeGuard[str]:
    """Whether it is a relative path that stays in its folder."""
    if not isinstance(path, str) or "\0" in path:
        return False
    return not {"", ".", ".."} & set(path.split("/"))


def is_file_entry(entry: object) -> bool:
    """Whether it names a file below the bundle, by a digest that is one."""
    if not isinstance(entry, dict):
        return False
    digest = entry.get("digest")
    return (
        is_inner_path(entry.get("path"))
        and isinstance(entry.get("executable"), bool)
        and isinstance(digest, str)
        and DIGEST.fullmatch(digest) is not None
    )


def visible_names(folder: Path, most: int | None = None) -> list[str]:
    """The names in a folder of a bundle in order, less hidden ones; the first `most` of them. None where it cannot be listed."""
    try:
        return sorted(name for name in descent.names(folder, most) if not name.startswith("."))
    except OSError:
        return []
