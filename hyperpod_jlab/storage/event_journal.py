"""The journal of a HyperPod cluster's events: what was seen here stays when AWS has dropped it.

One SQLite file for each cluster in the user's state folder, bounded in size and age. Deleting it loses the events that only it has, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.model.hyperpod_events import ClusterEvent
from hyperpod_jlab.storage.folder_lock import locked

T = TypeVar("T")

MOST = 10_000
"""Events that a journal keeps: the newest."""

OLDEST = 366 * 86_400.0
"""Seconds for which an event is kept, and a journal to which nothing is added."""

_LARGEST = 16 << 10
"""Characters of an event's details that are kept; longer ones are left out."""

_PATIENCE = 3.0
"""Seconds to wait for another process that writes."""

_SCHEMA = 1
_TABLES = (
    "CREATE TABLE events (event_id TEXT PRIMARY KEY, time REAL NOT NULL, seen_at REAL NOT NULL, event TEXT NOT NULL)",
    "CREATE INDEX events_by_time ON events (time DESC)",
    "CREATE TABLE looks (at REAL NOT NULL)",
)
_OF_A_LIST = {"times", "journal"}
"""What an event has only among others."""

_ADD = "INSERT INTO events VALUES (?, ?, ?, ?) ON CONFLICT (event_id) DO "
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
"""Errors that a new file would not have."""


@dataclass(frozen=True)
class Kept:
    """What a journal has.

    Attributes:
        events: Its events, newest first, each marked as being from the journal.
        looked_at: When AWS was asked for all events last (Unix seconds), by any process; None: never.
    """

    events: tuple[ClusterEvent, ...] = ()
    looked_at: float | None = None


def journal_folder() -> Path:
    """Where the journals lie."""
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(base) / "hyperpod-jlab" / "events"


class EventJournal:
    """The journal of one cluster. All of its methods wait for the disk, and for another process that writes.

    Args:
        arn: The cluster's ARN: a cluster that is made anew under the same name has another.
    """

    def __init__(self, arn: str) -> None:
        readable = re.sub(r"[^A-Za-z0-9-]+", "-", arn.rpartition("/")[2])[:40]
        name = f"{readable}-{hashlib.sha256(arn.encode()).hexdigest()[:16]}.sqlite"
        self.path = journal_folder() / name

    def add(self, events: Iterable[ClusterEvent], looked_at: float | None = None) -> None:
        """Keep events that AWS told; what is known of one with details stays.

        Args:
            events: The events.
            looked_at: When AWS was asked, where these are all that it has (Unix seconds).

        Raises:
            StorageError: The journal cannot be written.
        """
        now = time.time()

        def work(db: sqlite3.Connection) -> None:
            for event in events:
                row = (event.event_id, event.time, now, _text(event))
                known = "UPDATE SET event = excluded.event" if event.metadata else "NOTHING"
                db.execute(_ADD + known, row)
            if looked_at is not None:
                db.execute("DELETE FROM looks")
                db.execute("INSERT INTO looks VALUES (?)", (looked_at,))
            db.execute("DELETE FROM events WHERE time < ?", (now - OLDEST,))
            db.execute(
                "DELETE FROM events WHERE event_id IN (SELECT event_id FROM events ORDER BY time DESC LIMIT -1 OFFSET ?)",
                (MOST,),
            )

        with _errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._use(work)
            _remove_old(self.path.parent, now - OLDEST)

    def read(self, seen_before: float | None = None) -> Kept:
        """What the journal has.

        Args:
            seen_before: Only events that were seen before this moment (Unix seconds): what another process adds meanwhile AWS has still.

        Raises:
            StorageError: The journal cannot be read.
        """

        def work(db: sqlite3.Connection) -> Kept:
            rows = db.execute(
                "SELECT event FROM events WHERE seen_at < ? ORDER BY time DESC, event_id",
                (float("inf") if seen_before is None else seen_before,),
            )
            events = tuple(replace(_event(text), journal=True) for (text,) in rows)
            (looked_at,) = db.execute("SELECT max(at) FROM looks").fetchone()
            return Kept(events, looked_at)

        with _errors(self.path):
            return self._use(work) if self.path.exists() else Kept()

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file; one that is broken is begun anew."""
        # SQLite finds its side files by name: without the lock a process could mix an old file's pages into a new one.
        with locked(self.path.parent, _PATIENCE):
            _check_owner(self.path.parent)
            try:
                return self._work(work)
            except (sqlite3.Error, ValueError) as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
                if code & 0xFF not in _BROKEN:
                    raise
            for suffix in ("", "-journal"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            return self._work(work)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with contextlib.closing(_open(self.path)) as db:
            answer = work(db)
            db.commit()
            return answer


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_PATIENCE, isolation_level="IMMEDIATE")
    try:
        if db.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA:
            db.execute("BEGIN IMMEDIATE")
            for table in ("events", "looks"):
                db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA user_version={_SCHEMA}")
            db.commit()
    except BaseException:
        db.close()
        raise
    return db


def _check_owner(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(None, "it is another user's, or no folder", str(folder))


def _remove_old(folder: Path, before: float) -> None:
    """Remove journals of clusters that are long gone."""
    for path in folder.glob("*.sqlite"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()


def _text(event: ClusterEvent) -> str:
    plain = {name: value for name, value in asdict(event).items() if name not in _OF_A_LIST}
    text = json.dumps(plain, default=str)
    return text if len(text) <= _LARGEST else json.dumps({**plain, "metadata": {}})


def _event(text: str) -> ClusterEvent:
    plain: dict[str, Any] = json.loads(text)
    try:
        return ClusterEvent(**plain)
    except TypeError as error:
        raise ValueError(str(error)) from error


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            f"the journal of events cannot be used: {words}",
            code="event_journal",
            hint=f"it may be deleted: {path}",
            detail={"path": str(path)},
        ) from error
