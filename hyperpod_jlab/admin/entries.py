"""Lists of custom file systems as SageMaker has them: one of ours is put in, changed or taken out, and the others stay as they are.

SageMaker replaces the whole list at each update (UpdateDomain, UpdateUserProfile, UpdateSpace), so it is always read, merged and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
"""One file system of a list, in the API's own words; members that are newer than this package stay in it."""

ATTACHED = "attached"
"""What stands in the place of a path where a space has a file system: it has none of its own."""

_SETTING, _ATTACHED = "FSxLustreFileSystemConfig", "FSxLustreFileSystem"

MOST_SETTINGS, MOST_ATTACHED = 10, 5
"""Entries that `CustomFileSystemConfigs` of a domain or profile, and `CustomFileSystems` of a space, take (SageMaker's service model)."""


def path_of(entries: Sequence[Entry], file_system: str) -> str | None:
    """The folder of the file system that a domain's or profile's list mounts; None: it does not have it."""
    for entry in entries:
        found = entry.get(_SETTING) or {}
        if found.get("FileSystemId") == file_system:
            return str(found.get("FileSystemPath") or "/")
    return None


def with_path(entries: Sequence[Entry], file_system: str, path: str) -> tuple[Entry, ...]:
    """The list with that folder of the file system, at its place where it was there, else at the end."""
    made = {_SETTING: {"FileSystemId": file_system, "FileSystemPath": path}}
    if path_of(entries, file_system) is None:
        return (*entries, made)
    return tuple(
        {**entry, _SETTING: {**entry[_SETTING], **made[_SETTING]}}
        if _is_of(entry, _SETTING, file_system)
        else entry
        for entry in entries
    )


def without_path(entries: Sequence[Entry], file_system: str) -> tuple[Entry, ...]:
    """The list without the file system."""
    return tuple(entry for entry in entries if not _is_of(entry, _SETTING, file_system))


def is_attached(entries: Sequence[Entry], file_system: str) -> bool:
    """Whether a space's list has the file system."""
    return any(_is_of(entry, _ATTACHED, file_system) for entry in entries)


def with_attached(entries: Sequence[Entry], file_system: str) -> tuple[Entry, ...]:
    """A space's list with the file system."""
    if is_attached(entries, file_system):
        return tuple(entries)
    return (*entries, {_ATTACHED: {"FileSystemId": file_system}})


def without_attached(entries: Sequence[Entry], file_system: str) -> tuple[Entry, ...]:
    """A space's list without the file system."""
    return tuple(entry for entry in entries if not _is_of(entry, _ATTACHED, file_system))


def _is_of(entry: Entry, kind: str, file_system: str) -> bool:
    return (entry.get(kind) or {}).get("FileSystemId") == file_system
