"""The index of runs: a cache on this machine's local disk, one per partition. Deleting it only costs a rescan.

The shards' modification times reveal new and removed bundles, including those of other machines. The entry of an ended run is valid while its
`status_stamp` is the same; the caller recomputes everything else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hyperpod_jlab.core.run_id import RUN_ID, SHARDS, shard_of
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import is_uid, own_uid
from hyperpod_jlab.storage.files import locked, storage_errors
from hyperpod_jlab.storage.mounts import own_cache_folder
from hyperpod_jlab.storage.partition import Partition, RunFolder

# --------------------------------------------------------------------------------------------------
# The folders of bundles for the index: their names, modification times, and runs.

_FRESH_NS = 3_000_000_000
"""A folder modified this recently may change again within the clock's resolution, so it is always read again."""

FRESH = -1
"""The modification time recorded for such a folder."""

_MAX_FOREIGN_RUNS = 300
"""Maximum runs read from one shard of another user: others must not be able to slow us down."""

_SHARD = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True)
class Shard:
    """A folder of bundles: its name in the index, its modification time, its user, and whether it may contain other users' runs."""

    name: str
    path: Path
    uid: int
    mtime_ns: int
    is_shared: bool


def shards_of(run_folder: RunFolder, *, is_shared: bool = False) -> Iterator[Shard]:
    """The shards of a folder with their modification times.

    Raises:
        StorageError: This user's own cannot be read.
    """
    now, own_id = time.time_ns(), own_uid()
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(descent.opened_folder(run_folder.runs))
            names = descent.list_names_in(folder, SHARDS * 2)
        except (FileNotFoundError, NotADirectoryError, descent.ForeignFolderError):
            return
        except OSError:
            if run_folder.uid != own_id or is_shared:  # another user has closed it: its runs are not for us
                return
            with storage_errors(run_folder.runs):
                raise
        for name in filter(_SHARD.fullmatch, names):
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    mtime_ns = status.st_mtime_ns
                    is_recent = now - mtime_ns <= _FRESH_NS
                    shard_name = f"{run_folder.folder.name}/{name}"
                    path = run_folder.runs / name
                    yield Shard(shard_name, path, run_folder.uid, FRESH if is_recent else mtime_ns, is_shared)


def runs_in(shard: Shard) -> set[str]:
    """The ids of the runs in a shard; of another user's shard at most the limit."""
    foreign = shard.uid != own_uid()
    limit = _MAX_FOREIGN_RUNS if foreign else None
    # It was just removed, or another user has closed it.
    ignored_errors = (OSError,) if foreign or shard.is_shared else (FileNotFoundError, PermissionError)
    with storage_errors(shard.path), contextlib.suppress(*ignored_errors), descent.opened_folder(shard.path) as folder:
        names = _folders_in(folder) if shard.is_shared else descent.list_names_in(folder, limit)
        return {
            name
            for name in names
            if RUN_ID.fullmatch(name)
            and shard_of(name) == shard.path.name
            and (not shard.is_shared or _belongs_to(shard.uid, folder, name))
        }
    return set()


def _folders_in(folder: int) -> list[str]:
    """The names of the subfolders of an opened folder; only lists it on the file server."""
    descriptor = os.open(".", descent.LIST_FLAGS, dir_fd=folder)
    try:
        with os.scandir(descriptor) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    finally:
        os.close(descriptor)


def _belongs_to(uid: int, folder: int, name: str) -> bool:
    try:
        return is_uid(os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid, uid)
    except OSError:
        return False


def status_stamp(bundle: Path) -> int:
    """A number that changes with a run's records or the head of its bundle (52 bits; 0 if it does not exist)."""
    entries = []
    with contextlib.suppress(OSError), descent.opened_folder(bundle) as folder:
        for name in ("bundle.json", "spec.json"):
            entries += _stamp_in(folder, name)
        status = descent.step(folder, "status")
        try:
            entries += _stamp_in(status, ".")
            for name in ("observations", "actions"):
                entries += _stamp_in(status, name)
        finally:
            os.close(status)
    digest = hashlib.blake2b(repr(entries).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 12 if entries else 0


def _stamp_in(folder: int, name: str) -> list[tuple[str, int, int]]:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return []
    return [(name, status.st_mtime_ns, status.st_ino)]


T = TypeVar("T")

TIMEOUT_S = 3.0
"""Seconds to wait for another process that writes."""

_BATCH_SIZE = 500

RETRY_S = 10.0
"""Seconds before an unusable file is tried again."""

_SCHEMA = 7

_FILE_ERRORS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
}
"""Errors that a new file would not fix, or that concurrent use of the file causes."""

_TABLES = """
CREATE TABLE shards (name TEXT PRIMARY KEY, changed INTEGER NOT NULL, uid INTEGER NOT NULL);
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, shard TEXT NOT NULL, uid INTEGER NOT NULL, created REAL NOT NULL DEFAULT 0, cluster TEXT,
  notebook TEXT, state TEXT, ended INTEGER NOT NULL DEFAULT 0, stamp INTEGER NOT NULL DEFAULT 0, view TEXT
);
CREATE TABLE children (
  run_id TEXT, number INTEGER, state TEXT NOT NULL, exit_code INTEGER, started REAL, ended REAL, PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
CREATE INDEX runs_by_time ON runs (created DESC, run_id DESC);
CREATE INDEX runs_by_notebook ON runs (notebook) WHERE notebook IS NOT NULL;
CREATE INDEX runs_open ON runs (ended);
"""


class BrokenIndexError(Exception):
    """The index's contents are invalid."""


class _UnusableError(Exception):
    """The index's file is unusable now."""


@dataclass(frozen=True)
class Row:
    """A run in the index; `view` is its cached view, `stamp` its `status_stamp` before the view was computed."""

    run_id: str
    created: float
    ended: bool
    stamp: int
    view: dict[str, Any]


def default_path(partition: Partition) -> Path | None:
    """The path of a partition's index: in the user's cache directory, else in a temporary one of the user; None if neither is usable."""
    name = hashlib.sha256(os.fsencode(partition.root)).hexdigest()[:16]
    folder = own_cache_folder()
    return None if folder is None else folder / f"index-{name}.sqlite"


class RunIndex:
    """The index of one partition."""

    def __init__(self, partition: Partition, path: Path | None = None) -> None:
        self._partition = partition
        self._path = path or default_path(partition)
        self._memory: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._retry_at = 0.0

    def use(self, work: Callable[[Session], T]) -> T:
        """Run `work` on the index, possibly more than once.

        A missing, broken or outdated index is re-created; while none is writable, or others hold it for too long, an in-memory index is used.
        """
        if self._path is not None and time.monotonic() >= self._retry_at:
            try:
                with _lock_file(self._path):
                    return self._use_file(self._path, work)
            except _UnusableError:
                self._retry_at = time.monotonic() + RETRY_S
        with self._lock:
            if self._memory is None:
                self._memory = _open(":memory:")
            return self._work_on(self._memory, work)

    def _use_file(self, path: Path, work: Callable[[Session], T]) -> T:
        """Use the file; re-creates it if it is broken.

        Raises:
            _UnusableError: It is unusable now.
        """
        for is_broken in (False, True):
            if is_broken:
                self._remove(path)
            try:
                with contextlib.closing(_open(path)) as connection:
                    return self._work_on(connection, work)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0)
                if code & 0xFF in _FILE_ERRORS and code != sqlite3.SQLITE_READONLY_DBMOVED:
                    break
            except BrokenIndexError:
                continue
        raise _UnusableError

    def _work_on(self, connection: sqlite3.Connection, work: Callable[[Session], T]) -> T:
        result = work(Session(self._partition, connection))
        connection.commit()
        return result

    @staticmethod
    def _remove(path: Path) -> None:
        try:
            for suffix in ("", "-journal"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise _UnusableError from error


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the index's file. Only failing to get it raises `_UnusableError`, not errors while it is held."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(path.parent, TIMEOUT_S))
        except OSError as error:
            raise _UnusableError from error
        yield


def _open(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=TIMEOUT_S, check_same_thread=False, isolation_level="IMMEDIATE")
    try:
        # Not WAL, and one user at a time (see `locked`): SQLite finds its side files by name, so
        # deleting the index while others use it would make them mix the old one's pages into the
        # new one.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA synchronous=OFF")
        if connection.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA:
                for table in ("shards", "runs", "children"):
                    connection.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={secrets.randbits(31)}")
                connection.execute(f"PRAGMA user_version={_SCHEMA}")
            connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


class Session:
    """One use of the index; `number` changes when the file is another one."""

    def __init__(self, partition: Partition, connection: sqlite3.Connection) -> None:
        self._partition = partition
        self._db = connection
        self.number: int = connection.execute("PRAGMA application_id").fetchone()[0]

    def refresh(self, *, everyone: bool = False) -> None:
        """Add new bundles and drop removed ones: this user's own or, with `everyone`, also other users' on a shared partition."""
        own_id = own_uid()
        condition = "" if everyone else "WHERE uid = ?"
        indexed = dict(
            self._db.execute(
                f"SELECT name, changed FROM shards {condition}",  # noqa: S608 - fixed words
                () if everyone else (own_id,),
            )
        )
        existing = {}
        for number, run_folder in enumerate(self._partition.own_folders):
            # In the layout without user folders, others' runs may be in the same folders.
            existing.update({entry.name: entry for entry in shards_of(run_folder, is_shared=number > 0)})
        if everyone:
            for run_folder in self._partition.other_folders():
                existing.update({entry.name: entry for entry in shards_of(run_folder)})
        for removed in indexed.keys() - existing.keys():
            self._drop(removed, set())
            self._db.execute("DELETE FROM shards WHERE name = ?", (removed,))
        for name, shard in existing.items():
            if shard.mtime_ns == FRESH or indexed.get(name) != shard.mtime_ns:
                self._refresh_shard(shard)
        self.commit()

    def commit(self) -> None:
        """Commit the results so far, even if the rest fails."""
        self._db.commit()

    def forget(self, run_id: str) -> None:
        """Drop a run that is gone; reads its shard again, in case it is not."""
        condition = "WHERE run_id = ?"
        self._db.execute(
            f"UPDATE shards SET changed = -1 WHERE name = (SELECT shard FROM runs {condition})",  # noqa: S608 - fixed words
            (run_id,),
        )
        for table in ("runs", "children"):
            self._db.execute(f"DELETE FROM {table} {condition}", (run_id,))  # noqa: S608 - fixed words

    def list_unread(self) -> list[str]:
        """This user's runs without a cached view."""
        query = "SELECT run_id FROM runs WHERE uid = ? AND view IS NULL"
        return [row[0] for row in self._db.execute(query, (own_uid(),))]

    def list_unsettled(self, *, everyone: bool = False) -> list[str]:
        """This user's runs without a cached view, or not ended in it; with `everyone` also others' without a cached view."""
        query = "SELECT run_id FROM runs WHERE ended = 0 AND (uid = ? OR (? AND view IS NULL))"
        return [row[0] for row in self._db.execute(query, (own_uid(), everyone))]

    def find_folders(self, run_ids: Sequence[str]) -> dict[str, tuple[Path, int]]:
        """The folders and owners of runs' bundles as the scan found them, so that they need not be searched again."""
        folders = {}
        for start in range(0, len(run_ids), _BATCH_SIZE):
            part = run_ids[start : start + _BATCH_SIZE]
            placeholders = ", ".join("?" * len(part))
            query = f"SELECT run_id, shard, uid FROM runs WHERE run_id IN ({placeholders})"  # noqa: S608 - only marks
            for run_id, shard, uid in self._db.execute(query, part):
                folder, _, name = shard.partition("/")
                run_folder = RunFolder(self._partition.root / folder, uid)
                folders[run_id] = (run_folder.runs / name / run_id, uid)
        return folders

    def put(self, run_id: str, view: dict[str, Any], *, created: float, ended: bool, stamp: int) -> None:
        """Save a run's view."""
        self._db.execute(
            "UPDATE runs SET view=?, created=?, cluster=?, notebook=?, state=?, ended=?, stamp=? WHERE run_id=?",
            (
                json.dumps(view, ensure_ascii=False),
                created,
                view["cluster"],
                view.get("notebook"),
                view["state"],
                int(ended),
                stamp,
                run_id,
            ),
        )

    def children(self, run_id: str) -> list[tuple[Any, ...]]:
        """The end of an array's children: index, state, exit code, start and end (Unix seconds)."""
        query = "SELECT number, state, NULL, NULL, exit_code, started, ended FROM children WHERE run_id = ?"
        return self._db.execute(query, (run_id,)).fetchall()

    def put_children(self, run_id: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Save the end of an array's children: index, state, exit code, start and end."""
        self._db.executemany(
            "INSERT OR REPLACE INTO children VALUES (?, ?, ?, ?, ?, ?)", [(run_id, *row) for row in rows]
        )

    def newest(
        self,
        *,
        limit: int | None,
        before_run: tuple[float, str] | None = None,
        uid: int | None = None,
        cluster: str | None = None,
        notebook: str | None = None,
        states: tuple[str, ...] = (),
    ) -> list[Row]:
        """Runs, newest first, before a given (created, run_id); of one user or of all."""
        conditions, values = ["view IS NOT NULL"], list[Any]()
        for column, value in (("uid", uid), ("cluster", cluster), ("notebook", notebook)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(value)
        if states:
            conditions.append(f"state IN ({', '.join('?' * len(states))})")
            values.extend(states)
        if before_run is not None:
            conditions.append("(created, run_id) < (?, ?)")
            values.extend(before_run)
        query = (
            "SELECT run_id, created, ended, stamp, view FROM runs WHERE "  # noqa: S608 - only fixed words
            + " AND ".join(conditions)
            + " ORDER BY created DESC, run_id DESC LIMIT ?"
        )
        rows = self._db.execute(query, (*values, -1 if limit is None else limit))
        try:
            return [
                Row(run_id, created, bool(ended), stamp, json.loads(view))
                for run_id, created, ended, stamp, view in rows
            ]
        except ValueError as error:
            raise BrokenIndexError(str(error)) from error

    def _refresh_shard(self, shard: Shard) -> None:
        existing = runs_in(shard)
        indexed = {row[0] for row in self._db.execute("SELECT run_id FROM runs WHERE shard = ?", (shard.name,))}
        self._drop(shard.name, existing)
        # If two users took an id, it is one's own run, else that of the lower uid, as in
        # `Partition.find`.
        self._db.executemany(
            "INSERT INTO runs (run_id, shard, uid) VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET "
            "shard = excluded.shard, uid = excluded.uid, view = NULL, ended = 0 "
            "WHERE uid != excluded.uid AND (excluded.uid = ? OR (uid != ? AND excluded.uid < uid))",
            [(run_id, shard.name, shard.uid, own_uid(), own_uid()) for run_id in existing - indexed],
        )
        self._db.execute("INSERT OR REPLACE INTO shards VALUES (?, ?, ?)", (shard.name, shard.mtime_ns, shard.uid))

    def _drop(self, shard: str, existing: set[str]) -> None:
        """Drop the removed runs of a shard; if another user has one of the same id, reads that user's shard again."""
        removed = [
            row[0]
            for row in self._db.execute("SELECT run_id FROM runs WHERE shard = ?", (shard,))
            if row[0] not in existing
        ]
        if removed:
            for table in ("runs", "children"):
                self._db.executemany(
                    f"DELETE FROM {table} WHERE run_id = ?",  # noqa: S608 - fixed words
                    [(run_id,) for run_id in removed],
                )
            self._db.execute(
                "UPDATE shards SET changed = -1 WHERE name != ? AND name LIKE ?",
                (shard, f"%/{shard.rpartition('/')[2]}"),
            )
