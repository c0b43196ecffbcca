"""Cached controller queries, and queue snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import pwd
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
"""Seconds before a controller that did not answer is queried again; doubled with every failure, up to a maximum."""
_MAX_ERROR_TTL_S = 60.0


@dataclass(frozen=True)
class Snapshot:
    """The queue at one time (Unix seconds)."""

    time: float
    jobs: Sequence[SlurmJob]
    by_run: dict[str, list[SlurmJob]] = field(default_factory=dict)

    @classmethod
    def build(cls, timestamp: float, jobs: Sequence[SlurmJob]) -> Snapshot:
        """Build a snapshot with its jobs indexed by run."""
        by_run: dict[str, list[SlurmJob]] = {}
        for job in jobs:
            if job.run_id is not None:
                by_run.setdefault(job.run_id, []).append(job)
        return cls(timestamp, jobs, by_run)

    @property
    def states(self) -> frozenset[tuple[str, str]]:
        """The jobs and their states; other fields of a pending job (priority, expected start) change constantly."""
        return frozenset((job.job_id, job.state) for job in self.jobs)

    def has_changed_since(self, previous: Snapshot) -> bool:
        """Whether a job was added, changed its state or was lost. Ended jobs that are no longer listed do not count, because the controller forgets them."""
        unfinished = {(job.job_id, job.state) for job in previous.jobs if not job.is_ended}
        return not (self.states <= previous.states and unfinished <= self.states)

    @property
    def age(self) -> float:
        """Seconds since the snapshot was taken."""
        return time.time() - self.time


async def queue_snapshot(listing: Awaitable[Sequence[SlurmJob]]) -> Snapshot:
    """Take a snapshot, timestamped before the query."""
    asked_at = time.time()
    return await asyncio.to_thread(Snapshot.build, asked_at, await listing)


def local_user_name() -> str:
    """This user's name on this machine."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def controller_query(load: Callable[[], Awaitable[Loaded]]) -> CachedQuery[Loaded]:
    """A cached controller query that backs off when the controller does not answer."""
    return CachedQuery(load, error_ttl=_error_ttl)


def _error_ttl(failures: int) -> float:
    return min(_ERROR_TTL_S * 2.0 ** max(0, failures - 1), _MAX_ERROR_TTL_S)


# --------------------------------------------------------------------------------------------------
# The newest queue snapshot, shared with this user's other processes on this machine through a cache
# file.
#
# So `hpj show` in a loop costs one call in five seconds, and a kernel and the server share one.

SHARED_TTL_S = 5.0
"""Seconds for which another process's snapshot is used by a process without a newer one, even if it asks for a younger one."""

_FILE_VERSION = 3
"""The file has one line with this number and the snapshot's time, then lines with some jobs each."""

_JOBS_PER_LINE = 250
"""Jobs per line. No other thread of the process runs while a line is read or written, which takes a millisecond."""


@cache
def _jobs() -> TypeAdapter[list[SlurmJob]]:
    """The type adapter of a line; created on first use, because that takes some milliseconds."""
    return TypeAdapter(list[SlurmJob])


_CLUSTER_VARIABLES = ("PATH", "SLURM_CLUSTERS", "SLURM_CONF", "SLURM_CONF_SERVER")
"""Variables that select the cluster for the commands on this machine."""


def cache_path(topic: str, config: SlurmCluster) -> Path:
    """The cache file shared by all processes that use the same connection to the same cluster.

    Args:
        topic: The kind of query.
        config: The connection's configuration.
    """
    key_parts = [config.transport, config.user, config.ssh_config, config.commands, config.slurm_conf]
    key_parts += config.login_nodes or [config.hyperpod if config.transport == "ssh" else None]
    if config.transport == "here":
        key_parts += [os.environ.get(name) for name in _CLUSTER_VARIABLES]
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    digest = hashlib.sha256("\0".join(part or "" for part in [topic, *key_parts]).encode()).hexdigest()
    return Path(base) / "hyperpod-jlab" / "slurm" / f"{digest[:16]}.json"


class SharedQueue:
    """Queue snapshots, shared through the file.

    Args:
        load: Takes a new snapshot.
        path: The cache file. If it is not writable, snapshots are not shared, which only costs
            calls.
    """

    def __init__(self, load: Callable[[], Awaitable[Snapshot]], path: Path) -> None:
        self._query = controller_query(load)
        self._path = path
        self._changed_at = 0.0
        self._shared: Snapshot | None = None
        self._last_written: Snapshot | None = None

    def fresh(self, max_age: float) -> Snapshot | None:
        """The newest snapshot, if it is at most `max_age` seconds old and newer than the last change."""
        last = self.last
        if last is not None and self._changed_at < last.time and 0 <= last.age <= max_age:
            return last
        return None

    @property
    def last(self) -> Snapshot | None:
        """The newest snapshot, however old."""
        snapshots = [snapshot for snapshot in (self._query.last, self._shared) if snapshot is not None]
        return max(snapshots, key=lambda snapshot: snapshot.time, default=None)

    def forget(self) -> None:
        """Invalidate after a change: the next snapshot, of this or another process, is a new one."""
        self._changed_at = time.time()
        self._query.forget()
        self._shared = None
        with contextlib.suppress(OSError):
            self._path.unlink()

    async def get(self, max_age: float) -> Snapshot:
        """A snapshot that is at most `max_age` seconds old, or one that another process took just now.

        Raises:
            UnreachableError: The controller does not answer.
        """
        fresh = self.fresh(max_age)
        if fresh is not None:
            return fresh
        last = self.last
        # In a thread: 10,000 jobs take 0.1 s to read and 0.04 s to write.
        shared = await asyncio.to_thread(read_queue, self._path, max(max_age, SHARED_TTL_S))
        if (
            shared is not None
            and shared.time > max(self._changed_at, last.time if last else 0.0)  # not our own snapshot
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
    """Another process's snapshot of the last `max_age` seconds, or None without a usable one."""
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
    except (OSError, TypeError, ValueError):  # includes pydantic's ValidationError, a ValueError
        return None


def write_queue(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot for other processes."""
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
# Adaptive poll interval: short after an event, long in a quiet queue, none without clients.

MIN_POLL_S = 1.0
"""Poll interval in seconds just after an event."""
MAX_POLL_S = 75.0
"""Poll interval in seconds after a long quiet period: with all users' jobs and the nodes that makes two calls a minute at most."""
TABLE_POLL_S = 2.0
"""Minimum poll interval in seconds of the whole cluster: all users' jobs, and the nodes. A large cluster's queue takes a second to list."""
_GROWTH_DIVISOR = 10.0
_INACTIVE_AFTER_S = 90.0
"""Seconds without a request after which no client is assumed to be active; a visible panel requests every 60 s."""


class PollInterval:
    """The poll interval of one cluster in one process. A submit, an action or a queue change is an event."""

    def __init__(self) -> None:
        self._last_event_at = time.monotonic()
        self._last_active_at: float | None = None
        self._last_refresh_at = float("-inf")

    def may_refresh(self) -> bool:
        """Whether snapshots may be read again before their time: once a second. Each read by a poll is then a second old at most."""
        now = time.monotonic()
        if now - self._last_refresh_at < MIN_POLL_S:
            return False
        self._last_refresh_at = now
        return True

    @property
    def table_max_age(self) -> float:
        """The same for the whole cluster: all users' jobs, and the nodes."""
        return max(TABLE_POLL_S, self.max_age)

    def on_event(self) -> None:
        """Note an event, so that more changes are expected soon."""
        self._last_event_at = time.monotonic()

    def mark_active(self) -> None:
        """Note client activity. A process that never calls this, such as a command, counts as always active."""
        self._last_active_at = time.monotonic()

    @property
    def max_age(self) -> float:
        """Maximum age of a response in seconds; infinite without an active client."""
        now = time.monotonic()
        if self._last_active_at is not None and now - self._last_active_at > _INACTIVE_AFTER_S:
            return float("inf")
        return min(MAX_POLL_S, max(MIN_POLL_S, (now - self._last_event_at) / _GROWTH_DIVISOR))
