"""Jobs that were seen in the queue of a cluster without accounting, such as Kubernetes: its scheduler forgets ended jobs.

The rows are in a file of the user's cache folder, and can be deleted at any time. Nothing asks the cluster for it: what others ask for is noted.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hyperpod_jlab.core.cluster import JOB_ENDED, Job
from hyperpod_jlab.core.wire import adapter, to_json
from hyperpod_jlab.storage.mounts import own_cache_folder

_FORMAT = 1
_KEEP_S = 400 * 86_400.0
_TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT NOT NULL, started REAL NOT NULL, ended REAL, seen REAL NOT NULL, row BLOB NOT NULL,
  PRIMARY KEY (id, started)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_end ON jobs (ended);
"""


class JobLog:
    """The log of one cluster. Its methods may block, and never fail: without a usable file nothing is noted.

    Args:
        cluster: The cluster's name.
    """

    def __init__(self, cluster: str) -> None:
        folder = own_cache_folder()
        name = hashlib.sha256(cluster.encode()).hexdigest()[:16]
        self._file = None if folder is None else folder / f"jobs-{name}-{_FORMAT}.sqlite"
        self._noted: dict[tuple[str, float], tuple[str, float | None]] = {}

    def note(self, jobs: Sequence[Job], now: float | None = None) -> None:
        """Note all jobs of a cluster that have started. One that ran and is gone has ended when it was seen last.

        Args:
            jobs: The whole queue.
            now: Unix seconds; default: the time.
        """
        now = time.time() if now is None else now
        started = {(job.scheduler_id, job.started_at): job for job in jobs if job.started_at is not None}
        states = {key: (job.state, job.ends_at if job.state in JOB_ENDED else None) for key, job in started.items()}
        with contextlib.suppress(sqlite3.Error), self._opened() as database:
            # Those that run are always written: the time at which they were seen last is their end if they vanish.
            changed = [
                (*key, ended, now, to_json(_with_nodes(database, key, started[key]), Job))
                for key, (state, ended) in states.items()
                if state not in JOB_ENDED or self._noted.get(key) != states[key]
            ]
            database.executemany("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?)", changed)
            database.execute("UPDATE jobs SET ended = seen WHERE ended IS NULL AND seen < ?", (now,))
            database.execute("DELETE FROM jobs WHERE ended < ?", (now - _KEEP_S,))
            database.commit()
            self._noted = states

    def between(self, begin: float, end: float) -> list[Job]:
        """The jobs that ran in a period, the latest end first; those that run come first.

        Args:
            begin: The period's begin (Unix seconds).
            end: Its end.
        """
        with contextlib.suppress(sqlite3.Error, ValueError), self._opened() as database:
            rows = database.execute(
                "SELECT row, ended FROM jobs WHERE (ended IS NULL OR ended >= ?) AND started < ?"
                " ORDER BY ended IS NULL DESC, ended DESC",
                (begin, end),
            )
            return [_ended(adapter(Job).validate_json(row), ended) for row, ended in rows]
        return []

    def since(self) -> float | None:
        """The start of the first job in the log (Unix seconds); None if it is empty."""
        with contextlib.suppress(sqlite3.Error), self._opened() as database:
            (first,) = database.execute("SELECT min(started) FROM jobs").fetchone()
            return None if first is None else float(first)
        return None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        if self._file is None:
            raise sqlite3.OperationalError("no folder for it")
        try:
            database = _connect(self._file)
        except sqlite3.DatabaseError:  # damaged: begin again
            with contextlib.suppress(OSError):
                self._file.unlink()
            database = _connect(self._file)
        with closing(database):
            yield database


def _connect(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=5)
    try:
        database.executescript(_TABLE)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _with_nodes(database: sqlite3.Connection, key: tuple[str, float], job: Job) -> Job:
    """A job with the nodes that it had when it was seen before: one that has ended may have no pods any more."""
    if job.nodes:
        return job
    row = database.execute("SELECT row FROM jobs WHERE id = ? AND started = ?", key).fetchone()
    try:
        return job if row is None else replace(job, nodes=adapter(Job).validate_json(row[0]).nodes)
    except ValueError:  # a row of another version
        return job


def _ended(job: Job, ended: float | None) -> Job:
    if ended is None or job.state in JOB_ENDED:
        return job
    return replace(job, state="unknown", ends_at=ended, reason="its end was not seen")
