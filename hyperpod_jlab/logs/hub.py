"""Following: one reader a source in this process, however many follow it, and none when nobody does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hyperpod_jlab.logs.feed import Feed
from hyperpod_jlab.logs.pace import Budget
from hyperpod_jlab.logs.source import SourceSet

T = TypeVar("T")

READS_A_SECOND = 500.0
"""Looks a second that all feeds of a hub share."""

_RINGS = 16 << 20
_LARGEST_RING = 4 << 20
_SMALLEST_RING = 32 << 10


class Hub:
    """All feeds of this process.

    Args:
        budget: Looks a second for all feeds together.
        notifications: Use inotify as an additional wake-up where there is one.
        threads: How many reads may block at the same time.
    """

    def __init__(
        self, *, budget: float = READS_A_SECOND, notifications: bool = True, threads: int = 4
    ) -> None:
        self.budget = Budget(budget)
        self.notifications = notifications
        self.reads = 0
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="hyperpod-logs")
        self._feeds: dict[Hashable, Feed] = {}
        self._closed = False

    async def thread(self, work: Callable[..., T], *args: object) -> T:
        """Do something that blocks in one of the hub's threads.

        Raises:
            CancelledError: The hub is closed; work that had not begun by then ends the same way.
        """
        if self._closed:
            raise asyncio.CancelledError
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def feed(self, key: Hashable, sources: SourceSet) -> Feed:
        """The feed of a run; the first who asks brings its sources. Call `Feed.join` before anything is awaited."""
        if key not in self._feeds:
            self._feeds[key] = Feed(self, sources, lambda feed: self._forget(key, feed))
        return self._feeds[key]

    def _forget(self, key: Hashable, feed: Feed) -> None:
        if self._feeds.get(key) is feed:
            del self._feeds[key]

    @property
    def ring_limit(self) -> int:
        """Bytes that one source's ring may hold now."""
        readers = sum(len(feed.readers) for feed in self._feeds.values())
        return max(_SMALLEST_RING, min(_LARGEST_RING, _RINGS // max(1, readers)))

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def close(self) -> None:
        """End all feeds and give back the threads."""
        for feed in list(self._feeds.values()):
            await feed.close()
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
