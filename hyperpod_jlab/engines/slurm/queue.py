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

Seen = TypeVar("Seen")

_FAILED_FOR = 5.0
"""Seconds for which a controller that did not answer is left alone; they double with every failure, up to the longest."""
_FAILED_LONGEST = 60.0


@dataclass(frozen=True)
class Snapshot:
    """The queue at one time (Unix seconds)."""

    time: float
    jobs: Sequence[SlurmJob]
    by_run: dict[str, list[SlurmJob]] = field(default_factory=dict)

    @classmethod
    def of(cls, moment: float, jobs: Sequence[SlurmJob]) -> Snapshot:
        """A snapshot with its jobs by run."""
        by_run: dict[str, list[SlurmJob]] = {}
        for job in jobs:
            if job.run_id is not None:
                by_run.setdefault(job.run_id, []).append(job)
        return cls(moment, jobs, by_run)

    @property
    def states(self) -> frozenset[tuple[str, str]]:
        """The jobs and their states: what else is said of a job that waits (priority, expected start) changes all the time."""
        return frozenset((job.job_id, job.state) for job in self.jobs)

    def has_news_since(self, before: Snapshot) -> bool:
        """Whether a job came, changed its state or was lost. An ended job that is no longer listed is no news: the controller forgets it."""
        unfinished = {(job.job_id, job.state) for job in before.jobs if not job.ended}
        return not (self.states <= before.states and unfinished <= self.states)

    @property
    def age(self) -> float:
        """Seconds since it was taken."""
        return time.time() - self.time


async def queue_snapshot(listing: Awaitable[Sequence[SlurmJob]]) -> Snapshot:
    """A listing of jobs as a snapshot of the time before it was asked for."""
    asked = time.time()
    return await asyncio.to_thread(Snapshot.of, asked, await listing)


def asked_of_controller(load: Callable[[], Awaitable[Seen]]) -> CachedQuery[Seen]:
    """A cached query to the controller, which is left alone for a while after it did not answer."""
    return CachedQuery(load, error_ttl=_pause)


def _pause(failures: int) -> float:
    return min(_FAILED_FOR * 2.0 ** max(0, failures - 1), _FAILED_LONGEST)


# --------------------------------------------------------------------------------------------------
# The newest look at the queue, shared with this user's other processes on this machine through a cache file.
#
# So `hpj show` in a loop costs one call in five seconds, and a kernel and the server look once between them.

SHARED_AGE = 5.0
"""Seconds for which what another process saw is good enough for a process that knows nothing newer."""

_FORMAT = 2
"""The file is a line with this number and the time of the look, and lines with some jobs each."""

_LINE = 250
"""Jobs in a line: while one is read or written, which takes a millisecond, no other thread of the process runs."""


@cache
def _jobs() -> TypeAdapter[list[SlurmJob]]:
    """A line's form; made when first needed, for it takes some milliseconds."""
    return TypeAdapter(list[SlurmJob])


_NAME_THE_CLUSTER = ("PATH", "SLURM_CLUSTERS", "SLURM_CONF", "SLURM_CONF_SERVER")
"""Variables that say which cluster the commands of this machine talk to."""


def queue_file(what: str, config: SlurmCluster) -> Path:
    """The file in which looks are shared by all who go the same way to the same cluster.

    Args:
        what: What is looked at.
        config: The way.
    """
    way = [config.transport, config.user, config.ssh_config, config.commands, config.slurm_conf]
    way += config.login_nodes or [config.hyperpod if config.transport == "ssh" else None]
    if config.transport == "here":
        way += [os.environ.get(name) for name in _NAME_THE_CLUSTER]
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    digest = hashlib.sha256("\0".join(part or "" for part in [what, *way]).encode()).hexdigest()
    return Path(base) / "hyperpod-jlab" / "slurm" / f"{digest[:16]}.json"


class SharedQueue:
    """Looks at the queue, through the file.

    Args:
        look: Looks anew.
        path: The cache file. One that cannot be written only costs calls.
    """

    def __init__(self, look: Callable[[], Awaitable[Snapshot]], path: Path) -> None:
        self._query = asked_of_controller(look)
        self._path = path
        self._own_news = 0.0
        self._found: Snapshot | None = None
        self._left: Snapshot | None = None

    @property
    def last(self) -> Snapshot | None:
        """The newest snapshot, however old."""
        seen = [one for one in (self._query.last, self._found) if one is not None]
        return max(seen, key=lambda one: one.time, default=None)

    def forget(self) -> None:
        """Something was changed: the next look, of this or another process, is a new one."""
        self._own_news = time.time()
        self._query.forget()
        self._found = None
        with contextlib.suppress(OSError):
            self._path.unlink()

    async def get(self, max_age: float) -> Snapshot:
        """A snapshot that is at most `max_age` seconds old, or that another process took just now.

        Raises:
            UnreachableError: The controller does not answer.
        """
        last = self.last
        if last is not None and self._own_news < last.time and 0 <= last.age <= max_age:
            return last
        # In a thread: of 10,000 jobs it takes 0.1 s to read and 0.04 s to write.
        found = await asyncio.to_thread(read_queue, self._path, max(max_age, SHARED_AGE))
        if (
            found is not None
            and found.time > max(self._own_news, last.time if last else 0.0)  # not our own
            and 0 <= found.age <= max(max_age, SHARED_AGE)
        ):
            self._found = found
            return found
        seen = await self._query.get(max_age)
        if seen is not self._left and self._own_news < seen.time:
            self._left = seen
            await asyncio.to_thread(write_queue, self._path, seen)
        return seen


def read_queue(path: Path, max_age: float) -> Snapshot | None:
    """What a process left in the file in the last `max_age` seconds, or None when there is nothing that can be used."""
    try:
        there = path.stat()
        if there.st_uid != os.getuid() or time.time() - there.st_mtime > max_age:
            return None
        head, *lines = descent.read(path).split(b"\n")
        number, moment = json.loads(head)
        if number != _FORMAT:
            return None
        jobs = [job for line in lines for job in _jobs().validate_json(line)]
        return Snapshot.of(float(moment), jobs)
    except (OSError, TypeError, ValueError):  # pydantic's too is a ValueError
        return None


def write_queue(path: Path, snapshot: Snapshot) -> None:
    """Leave a snapshot for other processes."""
    lines = [
        json.dumps([_FORMAT, snapshot.time]).encode(),
        *(
            _jobs().dump_json(list(snapshot.jobs[begin : begin + _LINE]))
            for begin in range(0, len(snapshot.jobs), _LINE)
        ),
    ]
    with contextlib.suppress(OSError, StorageError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descent.replace(path, b"\n".join(lines), mode=0o600)


# --------------------------------------------------------------------------------------------------
# How old an answer of the scheduler may be: news is followed closely, a quiet queue is left alone, and nobody asks for nobody.

SHORTEST = 1.0
"""Seconds between looks just after something happened."""
LONGEST = 75.0
"""Seconds between looks when nothing has happened for long; with what the panel asks besides it makes two calls a minute at most."""
IDLE = 57.0
"""The same for the line of the cluster that panels keep, each of which asks once a minute."""
_GROWTH = 10.0
_AWAY = 90.0
"""Seconds without anybody's look after which nobody is taken to be there: a panel that is shown asks every 60 s."""


class PollInterval:
    """The pace of one cluster in one process. A submit, an action or a change of the queue is news."""

    def __init__(self) -> None:
        self._news = time.monotonic()
        self._looked: float | None = None

    def news(self) -> None:
        """Something happened, so that more is to be expected soon."""
        self._news = time.monotonic()

    def mark_active(self) -> None:
        """Somebody looks. A process that never says so, such as a command, is taken to look all the time."""
        self._looked = time.monotonic()

    @property
    def max_age(self) -> float:
        """Seconds that an answer may be old; without end while nobody looks."""
        now = time.monotonic()
        if self._looked is not None and now - self._looked > _AWAY:
            return float("inf")
        return min(LONGEST, max(SHORTEST, (now - self._news) / _GROWTH))
