"""Events of HyperPod clusters with continuous provisioning; AWS keeps none for others. Older events come from the journal."""

from __future__ import annotations

import asyncio
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

from hyperpod_jlab.aws.events import describe_event, list_events
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.core.cache import CachedRows, RowCache, RowLoad
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, StorageError, UnsupportedError
from hyperpod_jlab.core.events import MAX_EVENTS, ClusterEvent
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.files import locked

# --------------------------------------------------------------------------------------------------
# The journal of a HyperPod cluster's events: keeps what AWS drops.
#
# One SQLite file per cluster in the user's state folder, limited in size and age. Deleting it loses
# only the events that AWS has dropped.

T = TypeVar("T")

MAX_EVENTS_IN_JOURNAL = 10_000
"""Maximum number of events in a journal; the newest are kept."""

MAX_AGE_S = 366 * 86_400.0
"""Maximum age of an event, and of a journal without new events, in seconds."""

_MAX_EVENT_BYTES = 16 << 10
"""Maximum characters of an event's details; longer details are omitted."""

_TIMEOUT = 3.0
"""Seconds to wait for another process that writes."""

_SCHEMA = 1
_TABLES = (
    "CREATE TABLE events (event_id TEXT PRIMARY KEY, time REAL NOT NULL, seen_at REAL NOT NULL, event TEXT NOT NULL)",
    "CREATE INDEX events_by_time ON events (time DESC)",
    "CREATE TABLE looks (at REAL NOT NULL)",
)
_LIST_FIELDS = {"times", "journal"}
"""Fields that an event has only in a list."""

_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?) ON CONFLICT (event_id) DO "
_CORRUPT_ERRORS = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
"""Errors that a new file would not fix."""


@dataclass(frozen=True)
class JournalSummary:
    """The contents of a journal.

    Attributes:
        events: Its events, newest first, each marked as from the journal.
        looked_at: When any process last read all events from AWS (Unix seconds); None: never.
    """

    events: tuple[ClusterEvent, ...] = ()
    looked_at: float | None = None


def journal_folder() -> Path:
    """Where the journals lie."""
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(base) / "hyperpod-jlab" / "events"


class EventJournal:
    """The journal of one cluster. All methods block on the disk, and on other processes that write.

    Args:
        arn: The cluster's ARN: a cluster that is re-created under the same name has another.
    """

    def __init__(self, arn: str) -> None:
        readable = re.sub(r"[^A-Za-z0-9-]+", "-", arn.rpartition("/")[2])[:40]
        name = f"{readable}-{hashlib.sha256(arn.encode()).hexdigest()[:16]}.sqlite"
        self.path = journal_folder() / name

    def add(self, events: Iterable[ClusterEvent], seen_at: float | None = None) -> None:
        """Store events from AWS; known details are kept.

        Args:
            events: The events.
            seen_at: When AWS was queried (Unix seconds), if these are all its events.

        Raises:
            StorageError: The journal cannot be written.
        """
        now = time.time()

        def work(db: sqlite3.Connection) -> None:
            for event in events:
                row = (event.event_id, event.time, now, _text(event))
                on_conflict = "UPDATE SET event = excluded.event" if event.metadata else "NOTHING"
                db.execute(_INSERT + on_conflict, row)
            if seen_at is not None:
                db.execute("DELETE FROM looks")
                db.execute("INSERT INTO looks VALUES (?)", (seen_at,))
            db.execute("DELETE FROM events WHERE time < ?", (now - MAX_AGE_S,))
            db.execute(
                "DELETE FROM events WHERE event_id IN (SELECT event_id FROM events ORDER BY time DESC LIMIT -1 OFFSET ?)",
                (MAX_EVENTS_IN_JOURNAL,),
            )

        with _errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._use(work)
            _remove_old(self.path.parent, now - MAX_AGE_S)

    def read(self, before: float | None = None) -> JournalSummary:
        """Read the journal.

        Args:
            before: Only events seen before this time (Unix seconds): AWS still has those that another process adds later.

        Raises:
            StorageError: The journal cannot be read.
        """

        def work(db: sqlite3.Connection) -> JournalSummary:
            rows = db.execute(
                "SELECT event FROM events WHERE seen_at < ? ORDER BY time DESC, event_id",
                (float("inf") if before is None else before,),
            )
            events = tuple(replace(_event(text), journal=True) for (text,) in rows)
            (seen_at,) = db.execute("SELECT max(at) FROM looks").fetchone()
            return JournalSummary(events, seen_at)

        with _errors(self.path):
            return self._use(work) if self.path.exists() else JournalSummary()

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Use the file; a broken one is re-created."""
        # SQLite finds its side files by name: without the lock a process could mix an old file's
        # pages into a new one.
        with locked(self.path.parent, _TIMEOUT):
            _check_owner(self.path.parent)
            try:
                return self._work(work)
            except (sqlite3.Error, ValueError) as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
                if code & 0xFF not in _CORRUPT_ERRORS:
                    raise
            for suffix in ("", "-journal"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            return self._work(work)

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with contextlib.closing(_open(self.path)) as db:
            result = work(db)
            db.commit()
            return result


def _open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level="IMMEDIATE")
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
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(None, "it belongs to another user or is not a folder", str(folder))


def _remove_old(folder: Path, cutoff: float) -> None:
    """Remove journals of long-deleted clusters."""
    for path in folder.glob("*.sqlite"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < cutoff:
                path.unlink()


def _text(event: ClusterEvent) -> str:
    plain = {name: value for name, value in asdict(event).items() if name not in _LIST_FIELDS}
    text = json.dumps(plain, default=str)
    return text if len(text) <= _MAX_EVENT_BYTES else json.dumps({**plain, "metadata": {}})


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
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            f"the journal of events cannot be used: {reason}",
            code="event_journal",
            hint=f"you can delete it: {path}",
            detail={"path": str(path)},
        ) from error


class ClusterEvents:
    """The events of the HyperPod clusters of one region: a shared cache, completed from the journal.

    Args:
        clusters: The clusters.
    """

    def __init__(self, clusters: HyperpodClusters) -> None:
        self._clusters = clusters
        self._cache = RowCache()
        self._notes: dict[str, list[str]] = {}

    async def events(
        self, cluster: str, *, refresh: bool = False, wait: float | None = None
    ) -> tuple[CachedRows[ClusterEvent], list[str]]:
        """The events of a cluster in no order, and notes on the journal.

        Events of the journal are available before AWS answers, and when it fails.

        Args:
            cluster: Its name or ARN.
            refresh: Query AWS now.
            wait: Seconds to wait for all of them; default: a moment.

        Raises:
            UnsupportedError: AWS keeps no events for it.
            NotFoundError: The cluster does not exist.
            HyperpodError: AWS failed and nothing is cached (see `aws.errors`).
        """
        cached: CachedRows[ClusterEvent] = await self._cache.get(
            cluster, lambda load: self._read(load, cluster), refresh=refresh, wait=wait
        )
        return cached, self._notes.get(cluster, [])

    async def event(self, cluster: str, event_id: str) -> ClusterEvent:
        """One event with its details; from the journal if AWS has dropped it.

        Raises:
            HyperpodError: As with `events`.
        """
        journal, _ = await self._journal(cluster)
        try:
            described = await describe_event(self._clusters.aws, cluster, event_id)
        except NotFoundError:
            stored = await _stored_event(journal, event_id)
            if stored is None:
                raise
            return stored
        if journal is not None:
            try:
                await asyncio.to_thread(journal.add, [described])
            except StorageError:
                return described  # the event was found; `events` reports the error
        return described

    def forget(self, cluster: str) -> None:
        """Invalidate the cache after a change to the cluster."""
        self._cache.forget(cluster)

    async def close(self) -> None:
        await self._cache.close()

    async def _read(self, load: RowLoad[ClusterEvent], cluster: str) -> None:
        journal, notes = await self._journal(cluster)
        started_at = time.time()
        summary = JournalSummary()
        if journal is not None:
            try:
                summary = await asyncio.to_thread(journal.read)
            except StorageError as error:
                notes = [f"{error.message} ({error.hint})"]
        if summary.events:
            # The journal is as old as the last query that it contains.
            load.began_at = summary.looked_at or started_at
            await load.put({event.event_id: event for event in summary.events})
        events: list[ClusterEvent] = []
        async for page in list_events(self._clusters.aws, cluster):
            load.began_at = started_at
            events += page
            await load.put({event.event_id: event for event in with_reasons(page, summary)})
        _, problems = await store_events(journal, events, started_at, is_complete=True)
        if len(events) >= MAX_EVENTS:
            notes = [f"AWS keeps the newest {MAX_EVENTS} events of a cluster", *notes]
        self._notes[cluster] = list(dict.fromkeys(notes + problems))

    async def _journal(self, cluster: str) -> tuple[EventJournal | None, list[str]]:
        """The journal of a cluster with events; its description identifies it.

        Raises:
            UnsupportedError: It has no events.
        """
        try:
            described = await self._clusters.describe(cluster)
        except NotFoundError:
            raise
        except HyperpodError:
            return open_journal(None, cluster)
        check_has_events(described)
        return open_journal(described, cluster)


def check_has_events(cluster: HyperpodCluster) -> None:
    """Check that AWS keeps events of a cluster.

    Raises:
        UnsupportedError: It does not (``no_events``).
    """
    if cluster.provisioning != "Continuous":
        raise UnsupportedError(
            f"AWS records events only for clusters with continuous provisioning; {cluster.name} does not use it",
            code="no_events",
            hint=f"'hpj nodes {cluster.name}' shows states and their reasons",
            detail={"provisioning": cluster.provisioning},
        )


def open_journal(
    described: HyperpodCluster | None, requested_name: str
) -> tuple[EventJournal | None, list[str]]:
    """The journal of a cluster, or None and a note if its ARN is unknown.

    Args:
        described: The cluster, if its description was read.
        requested_name: The requested name or ARN.
    """
    arn = described.arn if described else requested_name
    if arn.startswith("arn:"):
        return EventJournal(arn), []
    return None, [
        f"{requested_name} could not be described, so older events from the journal are missing"
    ]


async def store_events(
    journal: EventJournal | None,
    events: Iterable[ClusterEvent],
    started_at: float,
    *,
    is_complete: bool,
) -> tuple[list[ClusterEvent], list[str]]:
    """Store AWS' events in the journal.

    Args:
        journal: The journal; None if there is none.
        events: AWS' events.
        started_at: When AWS was queried (Unix seconds).
        is_complete: Whether these are all of AWS' events.

    Returns:
        These and the events that only the journal has, and notes on the journal.
    """
    events = list(events)
    if journal is None:
        return events, []
    try:
        summary = await asyncio.to_thread(journal.read, started_at)
        await asyncio.to_thread(journal.add, events, started_at if is_complete else None)
    except StorageError as error:
        return events, [f"{error.message} ({error.hint})"]
    listed_ids = {event.event_id for event in events}
    older_events = [event for event in summary.events if event.event_id not in listed_ids]
    return [*with_reasons(events, summary), *older_events], []


def with_reasons(events: Iterable[ClusterEvent], summary: JournalSummary) -> list[ClusterEvent]:
    """Events of AWS' list, which has no reasons, with the reasons from the journal's details."""
    reasons = {event.event_id: event.reason for event in summary.events if event.reason}
    return [replace(item, reason=reasons.get(item.event_id, item.reason)) for item in events]


async def _stored_event(journal: EventJournal | None, event_id: str) -> ClusterEvent | None:
    if journal is None:
        return None
    try:
        summary = await asyncio.to_thread(journal.read)
    except StorageError:
        return None
    matches = (event for event in summary.events if event.event_id == event_id)
    return next(matches, None)


def cluster_events(services: Hyperpod, region: str | None) -> ClusterEvents:
    """The events of HyperPod clusters of a region; shared by all callers."""
    return services.get_or_make(
        ClusterEvents, region, lambda: ClusterEvents(services.hyperpod_clusters(region))
    )
