"""The newest look at the queue, shared with this user's other processes on this machine through a cache file.

So `hpj show` in a loop costs one call in five seconds, and a kernel and the server look once between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from hyperpod_jlab.model.config import SlurmCluster
from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.orchestrators.slurm.job import SlurmJob
from hyperpod_jlab.orchestrators.slurm.watch import Snapshot, Watch
from hyperpod_jlab.storage import descent

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
        self._watch = Watch(look)
        self._path = path
        self._own_news = 0.0
        self._found: Snapshot | None = None
        self._left: Snapshot | None = None

    @property
    def last(self) -> Snapshot | None:
        """The newest snapshot, however old."""
        seen = [one for one in (self._watch.last, self._found) if one is not None]
        return max(seen, key=lambda one: one.time, default=None)

    def forget(self) -> None:
        """Something was changed: the next look, of this or another process, is a new one."""
        self._own_news = time.time()
        self._watch.forget()
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
        seen = await self._watch.get(max_age)
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
