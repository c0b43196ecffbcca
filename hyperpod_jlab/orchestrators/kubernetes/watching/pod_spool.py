"""What one pod prints, put into the run's records folder, whoever makes what of it (see `framed_pod` and `raw_pod`).

How far it was read is kept beside, as the pod log's cursor; it is written after everything before it was, so whatever is broken off, and by whomever, is done
again and comes out the same.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from hyperpod_jlab.orchestrators.kubernetes.api.pod_log import Cursor, PodLog, Portion
from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes, Piece, SpooledLog
from hyperpod_jlab.storage import atomic, descent
from hyperpod_jlab.storage.records import BundleReader

FOLDER = "spool"
"""In the records folder: how far each pod's log was read, and what of logs is lost."""

_KEEP_EVERY = 0.5


def spool_name(pod: str, uid: str) -> str:
    """The place in the records folder of what says how far a pod's log was read."""
    return f"{FOLDER}/{pod}.{uid[:8]}.json"


@dataclass(frozen=True)
class Kept:
    """How far a pod's log was put into the records folder.

    Attributes:
        cursor: Where to go on.
        attempts: The numbers of attempts here, by what the pod counts.
        said: Bytes of the file for lines that say themselves nothing of where they belong.
    """

    cursor: Cursor = field(default_factory=Cursor)
    attempts: Mapping[int, int] = field(default_factory=dict)
    said: int = 0

    def to_json(self) -> bytes:
        """As it is kept."""
        attempts = {str(told): number for told, number in self.attempts.items()}
        return atomic.to_json(
            {"cursor": self.cursor.to_dict(), "attempts": attempts, "said": self.said}
        )

    @classmethod
    def read(cls, path: Path) -> Kept:
        """What was kept; nothing when it cannot be read: then all is done again."""
        try:
            found = json.loads(descent.read(path))
            attempts = {int(told): int(number) for told, number in found["attempts"].items()}
            return cls(Cursor.from_dict(found["cursor"]), attempts, int(found["said"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()


class PodSpool(ABC):
    """One pod of a run.

    Args:
        bundle: The run.
        pod: The pod.
        modes: For what is made in the bundle.
    """

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        self.pod = pod
        self._modes = modes
        self._folder = bundle.records / FOLDER
        self._logs = bundle.records / "logs"
        self._path = bundle.records / spool_name(pod.name, pod.uid)
        self._files: dict[Path, SpooledLog] = {}
        self._kept = Kept.read(self._path)
        self._kept_at = 0.0
        self._now = self._kept

    @property
    def over(self) -> bool:
        """Whether everything that can come has come."""
        return self._kept.cursor.over

    async def catch_up(self, log: PodLog) -> None:
        """Put away what is there now."""
        await self._take(log.read(self._cursor))

    async def follow(self, log: PodLog) -> None:
        """Put away what comes until nothing more can."""
        await self._take(log.follow(self._cursor))

    @abstractmethod
    def _begin(self) -> None:
        """Reading begins at what was kept."""

    @abstractmethod
    def _put(self, portion: Portion) -> bool:
        """Put a portion away; whether one may go on behind it, nothing of it being held. Blocking."""

    def _count(self, *, attempts: Mapping[int, int] | None = None, said: int | None = None) -> None:
        """Note how far one has come."""
        self._now = replace(
            self._now,
            attempts=self._now.attempts if attempts is None else attempts,
            said=self._now.said if said is None else said,
        )

    def _write(self, pieces: Mapping[Path, Sequence[Piece]]) -> None:
        """Put pieces into log files."""
        for path, found in pieces.items():
            if path not in self._files:
                self._files[path] = SpooledLog(path, self._folder, self._modes)
            self._files[path].write(found)

    @property
    def _cursor(self) -> Cursor | None:
        return self._kept.cursor if self._kept.cursor != Cursor() else None

    async def _take(self, portions: AsyncGenerator[Portion, None]) -> None:
        self._now = self._kept
        self._begin()
        try:
            async with aclosing(portions):
                async for portion in portions:
                    await asyncio.to_thread(self._step, portion)
        finally:
            await asyncio.to_thread(self._close)

    def _step(self, portion: Portion) -> None:
        clean = self._put(portion)
        self._now = replace(self._now, cursor=portion.cursor)
        if clean or portion.cursor.over:
            self._kept = self._now
            if self.over or time.monotonic() - self._kept_at > _KEEP_EVERY:
                self._keep()

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        self._modes.make(self._folder)
        descent.replace(self._path, self._kept.to_json(), mode=self._modes.file)

    def _close(self) -> None:
        if self._kept != Kept():
            self._keep()
        for file in self._files.values():
            file.close()
        self._files.clear()
