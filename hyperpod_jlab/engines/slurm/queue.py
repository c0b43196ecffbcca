"""What the controller is asked for all who want to know it, and the queue as it was at one time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from hyperpod_jlab.core.cache import CachedQuery
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.engines.slurm.jobs import SlurmJob
from hyperpod_jlab.storage import descent

Loaded = TypeVar("Loaded")

_ERROR_TTL_S = 5.0
"""Seconds for which a controller that did not answer is left alone; they double with every failure, up to the longest."""
_MAX_ERROR_TTL_S = 60.0


@dataclass(frozen=True)
class Snapshot:
    """The queue at one time (Unix seconds)."""

    time: float
    jobs: Sequence[SlurmJob]
    by_run: dict[str, list[SlurmJob]] = field(default_factory=dict)

    @classmethod
    def build(cls, timestamp: float, jobs: Sequence[SlurmJob]) -> Snapshot:
        """A snapshot with its jobs by run."""
        by_run: dict[str, list[SlurmJob]] = {}
        for job in jobs:
            if job.run_id is not None:
                by_run.setdefault(job.run_id, []).append(job)
        return cls(timestamp, jobs, by_run)

    @property
    def states(self) -> frozenset[tuple[str, str]]:
        """The jobs and their states: what else is said of a job that waits (priority, expected start) changes all the time."""
        return frozenset((job.job_id, job.state) for job in self.jobs)

    def has_changed_since(self, previous: Snapshot) -> bool:
        """Whether a job came, changed its state or was lost. An ended job that is no longer listed is no news: the controller forgets it."""
        unfinished = {(job.job_id, job.state) for job in previous.jobs if not job.is_ended}
        return not (self.states <= previous.states and unfinished <= self.states)

    @property
    def age(self) -> float:
        """Seconds since it was taken."""
        return time.time() - self.time


async def queue_snapshot(listing: Awaitable[Sequence[SlurmJob]]) -> Snapshot:
    """A listing of jobs as a snapshot of the time before it was asked for."""
    asked_at = time.time()
    return await asyncio.to_thread(Snapshot.build, asked_at, await listing)


def controller_query(load: Callable[[], Awaitable[Loaded]]) -> CachedQuery[Loaded]:
    """A cached query to the controller, which is left alone for a while after it did not answer."""
    return CachedQuery(load, error_ttl=_error_ttl)


def _error_ttl(failures: int) -> float:
    return min(_ERROR_TTL_S * 2.0 ** max(0, failures - 1), _MAX_ERROR_TTL_S)


# --------------------------------------------------------------------------------------------------
# The newest look at the queue, shared with this user's other processes on this machine through a cache file.
#
# So `hpj show` in a loop costs one call in five seconds, and a kernel and the server look once between them.

SHARED_TTL_S = 5.0
"""Seconds for which what another process saw is good enough for a process that knows nothing newer."""

_FILE_VERSION = 3
"""The file is a line with this number and the time of the look, and lines with some jobs each."""

_JOBS_PER_LINE = 250
"""Jobs in a line: while one is read or written, which takes a millisecond, no other thread of the process runs."""


@cache
def _jobs() -> TypeAdapter[list[SlurmJob]]:
    """A line's form; made when first needed, for it takes some milliseconds."""
    return TypeAdapter(list[SlurmJob])


_CLUSTER_VARIABLES = ("PATH", "SLURM_CLUSTERS", "SLURM_CONF", "SLURM_CONF_SERVER")
"""Variables that say which cluster the commands of this machine talk to."""


def cache_path(topic: str, config: SlurmCluster) -> Path:
    """The file in which looks are shared by all who go the same way to the same cluster.

    Args:
        topic: What is looked at.
        config: The way.
    """
    key_parts = [
        config.transport,
        config.user,
        config.ssh_config,
        config.commands,
        config.slurm_conf,
    ]
    key_parts += config.login_nodes or [config.hyperpod if config.transport == "ssh" else None]
    if config.transport == "here":
        key_parts += [os.environ.get(name) for name in _CLUSTER_VARIABLES]
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    digest = hashlib.sha256(
        "\0".join(part or "" for part in [topic, *key_parts]).encode()
    ).hexdigest()
    return Path(base) / "hyperpod-jlab" / "slurm" / f"{digest[:16]}.json"


class SharedQueue:
    """Looks at the queue, through the file.

    Args:
        load: Looks anew.
        path: The cache file. One that cannot be written only costs calls.
    """

    def __init__(self, load: Callable[[], Awaitable[Snapshot]], path: Path) -> None:
        self._query = controller_query(load)
        self._path = path
        self._changed_at = 0.0
        self._shared: Snapshot | None = None
        self._last_written: Snapshot | None = None

    @property
    def last(self) -> Snapshot | None:
        """The newest snapshot, however old."""
        snapshots = [
            snapshot for snapshot in (self._query.last, self._shared) if snapshot is not None
        ]
        return max(snapshots, key=lambda snapshot: snapshot.time, default=None)

    def forget(self) -> None:
        """Something was changed: the next look, of this or another process, is a new one."""
        self._changed_at = time.time()
        self._query.forget()
        self._shared = None
        with contextlib.suppress(OSError):
            self._path.unlink()

    async def get(self, max_age: float) -> Snapshot:
        """A snapshot that is at most `max_age` seconds old, or that another process took just now.

        Raises:
            UnreachableError: The controller does not answer.
        """
        last = self.last
        if last is not None and self._changed_at < last.time and 0 <= last.age <= max_age:
            return last
        # In a thread: of 10,000 jobs it takes 0.1 s to read and 0.04 s to write.
        shared = await asyncio.to_thread(read_queue, self._path, max(max_age, SHARED_TTL_S))
        if (
            shared is not None
            and shared.time > max(self._changed_at, last.time if last else 0.0)  # not our own
            and 0 <= shared.age <= max(max_age, SHARED_TTL_S)
        ):
            self._shared = shared
            return shared
        fresh = await self._query.get(max_age)
        if fresh is not self._last_written and self._changed_at < fresh.time:
            self._last_written = fresh
            await asyncio.to_thread(write_queue, self._path, fresh)
        return fresh


def read_queue(path: Path, max_age: float) -> Snapshot | None:
    """What a process left in the file in the last `max_age` seconds, or None when there is nothing that can be used."""
    try:
        status = path.stat()
        if status.st_uid != os.getuid() or time.time() - status.st_mtime > max_age:
            return None
        head, *lines = descent.read(path).split(b"\n")
        version, timestamp = json.loads(head)
        if version != _FILE_VERSION:
            return None
        jobs = [job for line in lines for job in _jobs().validate_json(line)]
        return Snapshot.build(float(timestamp), jobs)
    except (OSError, TypeError, ValueError):  # pydantic's too is a ValueError
        return None


def write_queue(path: Path, snapshot: Snapshot) -> None:
    """Leave a snapshot for other processes."""
    lines = [
        json.dumps([_FILE_VERSION, snapshot.time]).encode(),
        *(
            _jobs().dump_json(list(snapshot.jobs[start : start + _JOBS_PER_LINE]))
            for start in range(0, len(snapshot.jobs), _JOBS_PER_LINE)
        ),
    ]
    with contextlib.suppress(OSError, StorageError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descent.replace(path, b"\n".join(lines), mode=0o600)


# --------------------------------------------------------------------------------------------------
# How old an answer of the scheduler may be: news is followed closely, a quiet queue is left alone, and nobody asks for nobody.

MIN_POLL_S = 1.0
"""Seconds between looks just after something happened."""
MAX_POLL_S = 75.0
"""Seconds between looks when nothing has happened for long; with what the panel asks besides it makes two calls a minute at most."""
IDLE_POLL_S = 57.0
"""The same for the line of the cluster that panels keep, each of which asks once a minute."""
_GROWTH_DIVISOR = 10.0
_INACTIVE_AFTER_S = 90.0
"""Seconds without anybody's look after which nobody is taken to be there: a panel that is shown asks every 60 s."""


class PollInterval:
    """The pace of one cluster in one process. A submit, an action or a change of the queue is news."""

    def __init__(self) -> None:
        self._last_event_at = time.monotonic()
        self._last_active_at: float | None = None

    def on_event(self) -> None:
        """Something happened, so that more is to be expected soon."""
        self._last_event_at = time.monotonic()

    def mark_active(self) -> None:
        """Somebody looks. A process that never says so, such as a command, is taken to look all the time."""
        self._last_active_at = time.monotonic()

    @property
    def max_age(self) -> float:
        """Seconds that an answer may be old; without end while nobody looks."""
        now = time.monotonic()
        if self._last_active_at is not None and now - self._last_active_at > _INACTIVE_AFTER_S:
            return float("inf")
        return min(MAX_POLL_S, max(MIN_POLL_S, (now - self._last_event_at) / _GROWTH_DIVISOR))
