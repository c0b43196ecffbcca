"""Move this user's runs from the partition's old layout to the current one.

In the old layout all users of a shared partition shared ``.hyperpod/runs``, so the owner of a folder there could replace others' files in it. Run ids stay,
and a bundle moves whole, with one rename; a bundle that another user could have created from this user's other files is marked, and needs a confirmation to
run again. Code is moved after its bytes were read again and match the digest in its name.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.content import DIGEST, digest_of, stored_path
from hyperpod_jlab.storage.files import storage_errors, to_json
from hyperpod_jlab.storage.index import runs_in, shards_of
from hyperpod_jlab.storage.locate import SUSPECT, is_replaceable_by_others
from hyperpod_jlab.storage.partition import Partition, RunFolder


@dataclass(frozen=True)
class MigrationResult:
    """The result of a migration: runs that were moved, those that could not be, with the reason, and the number of code files moved."""

    runs: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]
    code: int


def runs_in_old_layout(partition: Partition) -> Iterator[str]:
    """The ids of this user's runs in the old layout. May block."""
    old_folder = partition.own_folders[1]
    for shard in shards_of(old_folder, is_shared=True):
        yield from runs_in(shard)


def migrate(partition: Partition, run_ids: Iterable[str]) -> MigrationResult:
    """Move this user's runs, and the code stored beside them, to their new folder. May block.

    Args:
        partition: The storage partition.
        run_ids: The runs; they must have ended, since jobs use their bundle's path.

    Raises:
        StorageError: The new folder cannot be created, or is not trustworthy.
    """
    partition.prepare()
    new_folder, old_folder = partition.own_folders
    moved_runs, problems = list[str](), list[tuple[str, str]]()
    for run_id in run_ids:
        try:
            _move(partition, old_folder.bundle(run_id), new_folder.bundle(run_id))
        except StorageError as error:
            problems.append((run_id, error.message))
        else:
            moved_runs.append(run_id)
    code = _move_code(partition, new_folder, old_folder)
    _remove_empty(old_folder)
    return MigrationResult(tuple(moved_runs), tuple(problems), code)


def _move(partition: Partition, bundle: Path, target: Path) -> None:
    partition.make_folder(target.parent)
    is_suspect = is_replaceable_by_others(partition, bundle)
    with storage_errors(bundle):
        if descent.state(bundle).st_uid != os.getuid():
            raise PermissionError("it belongs to another user")
        if descent.is_folder(target):
            raise FileExistsError("a run with the same id exists in the new layout")
        descent.rename(bundle, target)
        if descent.state(target).st_uid != os.getuid():
            # The owner of the old folder has just replaced it: move it back.
            descent.rename(target, bundle)
            raise PermissionError("another user replaced it")
        if partition.shared:
            descent.change_mode(target, partition.folder_mode)
        if is_suspect:
            descent.replace(target / SUSPECT, to_json({"time": time.time()}), mode=partition.file_mode)


def _move_code(partition: Partition, new_folder: RunFolder, old_folder: RunFolder) -> int:
    """Move this user's content store files whose bytes match their names; returns their number."""
    count = 0
    for path in _own_files(old_folder.folder / "code"):
        digest = path.name.removesuffix("x")
        target = stored_path(new_folder.folder, digest, executable=path.name.endswith("x"))
        with contextlib.suppress(OSError):
            partition.make_folder(target.parent)
            if _link_file(path, target, digest):
                descent.unlink(path)
                count += 1
    return count


def _link_file(path: Path, target: Path, digest: str) -> bool:
    """Link a file into this user's own folder; False if its digest does not match. Checks the new link, which nobody else can replace."""
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    descent.link(path, temporary)
    try:
        if not _is_own_file(temporary) or digest_of(temporary) != digest:
            return False
        if not descent.is_file(target):
            descent.rename(temporary, target)
        return True
    finally:
        descent.unlink(temporary)


def _own_files(store: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for folder in descent.list_names(store):
            with contextlib.suppress(OSError):
                for name in descent.list_names(store / folder):
                    path = store / folder / name
                    if DIGEST.fullmatch(name.removesuffix("x")) and _is_own_file(path):
                        yield path


def _is_own_file(path: Path) -> bool:
    try:
        return descent.is_file(path) and descent.state(path).st_uid == os.getuid()
    except OSError:
        return False


def _remove_empty(old_folder: RunFolder) -> None:
    """Remove this user's empty folders of the old layout."""
    for top in (old_folder.folder / "runs", old_folder.folder / "code"):
        with contextlib.suppress(OSError):
            for name in descent.list_names(top):
                _rmdir(top / name)
        _rmdir(top)
    _rmdir(old_folder.folder)


def _rmdir(folder: Path) -> None:
    with contextlib.suppress(OSError), descent.opened_folder(folder.parent) as parent:
        os.rmdir(folder.name, dir_fd=parent)
