"""The folders of bundles as the index sees them: which there are, when they changed, and which runs lie in them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.model.run_id import RUN_ID, SHARDS, shard_of
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.atomic import storage_errors
from hyperpod_jlab.storage.numbers import is_number, own_number
from hyperpod_jlab.storage.partition import Place

_FRESH_NS = 3_000_000_000
"""A folder that changed this recently may change again within the clock's grain, and is read anew each time."""

FRESH = -1
"""The time of change of such a folder."""

_MOST_FOREIGN = 300
"""Runs that are taken from one shard of another user: what others lay there must not cost us more than it tells."""

_SHARD = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True)
class Shard:
    """A folder of bundles: its name in the index, when it changed, whose runs are taken from it, and whether others' may lie beside them."""

    name: str
    path: Path
    uid: int
    changed: int
    mixed: bool


def shards_of(place: Place, *, mixed: bool = False) -> Iterator[Shard]:
    """The shards of a place with the time of their last change.

    Raises:
        StorageError: This user's own cannot be read.
    """
    now, me = time.time_ns(), own_number()
    with contextlib.ExitStack() as reading:
        try:
            folder = reading.enter_context(descent.opened_folder(place.runs))
            names = descent.names_in(folder, SHARDS * 2)
        except (FileNotFoundError, NotADirectoryError, descent.ForeignFolderError):
            return
        except OSError:
            if place.uid != me or mixed:  # another user closed it: such runs are not for us
                return
            with storage_errors(place.runs):
                raise
        for name in filter(_SHARD.fullmatch, names):
            with contextlib.suppress(OSError):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    changed = found.st_mtime_ns
                    fresh = now - changed <= _FRESH_NS
                    known_as = f"{place.folder.name}/{name}"
                    path = place.runs / name
                    yield Shard(known_as, path, place.uid, FRESH if fresh else changed, mixed)


def runs_in(shard: Shard) -> set[str]:
    """The ids of the runs that lie in a shard; of another user's not more than are looked at."""
    foreign = shard.uid != own_number()
    most = _MOST_FOREIGN if foreign else None
    # It went just now, or another user closed it: such runs are not ours to list.
    hidden = (OSError,) if foreign or shard.mixed else (FileNotFoundError, PermissionError)
    with (
        storage_errors(shard.path),
        contextlib.suppress(*hidden),
        descent.opened_folder(shard.path) as folder,
    ):
        names = _folders_in(folder) if shard.mixed else descent.names_in(folder, most)
        return {
            name
            for name in names
            if RUN_ID.fullmatch(name)
            and shard_of(name) == shard.path.name
            and (not shard.mixed or _belongs_to(shard.uid, folder, name))
        }
    return set()


def _folders_in(folder: int) -> list[str]:
    """The names of the folders in an opened one, which asks nothing of the file server beyond its list."""
    listed = os.open(".", descent.LIST, dir_fd=folder)
    try:
        with os.scandir(listed) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    finally:
        os.close(listed)


def _belongs_to(uid: int, folder: int, name: str) -> bool:
    try:
        return is_number(os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid, uid)
    except OSError:
        return False


def status_stamp(bundle: Path) -> int:
    """A number that changes when something in a run's records or the head of its bundle does (52 bits; 0 when nothing is there)."""
    seen = []
    with contextlib.suppress(OSError), descent.opened_folder(bundle) as folder:
        for name in ("bundle.json", "spec.json"):
            seen += _stamp_in(folder, name)
        status = descent.step(folder, "status")
        try:
            seen += _stamp_in(status, ".")
            for name in ("observations", "actions"):
                seen += _stamp_in(status, name)
        finally:
            os.close(status)
    digest = hashlib.blake2b(repr(seen).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 12 if seen else 0


def _stamp_in(folder: int, name: str) -> list[tuple[str, int, int]]:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return []
    return [(name, found.st_mtime_ns, found.st_ino)]
