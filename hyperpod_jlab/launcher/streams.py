"""All logs of a node together."""

from __future__ import annotations

import contextlib
import time
from typing import Callable, Dict, Optional

from .bundle_files import BundleFiles, Place, Records
from .file_news import FileNews
from .frames import FrameEcho
from .logs import Echo, LineEcho, Outlet, Stream


class Streams:
    """All logs of this node: looks at them, keeps the activity record, feeds the launcher's stdout."""

    FAST = 0.05
    SLOW = 0.25
    HEARTBEAT = 5.0

    def __init__(
        self, place: Place, files: BundleFiles, nodes: int, outlet: Outlet, echo: str
    ) -> None:
        self._place = place
        self._files = files
        self._outlet = outlet
        self._echoes = echo
        self._streams: Dict[str, Stream] = {}
        # A thousand nodes share one metadata server: each writes more seldom.
        self._activity_every = max(0.25, nodes * 0.004)
        self._activity_at = float("-inf")
        self._changed = False
        self._ended = False
        self.delay = self.FAST
        # Only what goes over stdout alone is waited for by readers who cannot see the files.
        self.news = FileNews() if echo == "frames" else None

    def open(self, key: str, path: str, label: str) -> Stream:
        """Take in a log file, made if need be."""
        echo: Optional[Echo] = LineEcho(label) if self._echoes == "lines" else None
        if self._echoes == "frames":
            echo = FrameEcho("%d.%d.%s" % (self._place.attempt, self._place.node_rank, key))
            self._outlet.put(echo.opening)
        stream = Stream(self._files, path, echo)
        self._streams[key] = stream
        self._changed = True
        if self.news is not None:
            self.news.watch(path)
        return stream

    def __getitem__(self, key: str) -> Stream:
        return self._streams[key]

    def poll(self, records: Records) -> None:
        """Look at all files, echo, and write the activity record when its time has come."""
        if self.news is not None:
            self.news.clear()
        grew = False
        for stream in self._streams.values():
            with contextlib.suppress(OSError):
                grew = stream.look() or grew
        behind = self._echo()
        self._changed = self._changed or grew
        if behind and self._outlet.has_room:
            self.delay = 0.0
        else:
            self.delay = (
                self.FAST if grew or behind else min(max(self.delay, 0.01) * 1.5, self.SLOW)
            )
        since = time.monotonic() - self._activity_at
        if since >= (self._activity_every if self._changed else self.HEARTBEAT):
            self._write_activity(records)

    def _echo(self) -> bool:
        """Feed stdout as far as it takes; whether something is left to feed."""
        if self._outlet.broken is not None:
            return False
        now = time.monotonic()
        for stream in self._streams.values():
            if self._outlet.has_room:
                self._outlet.put(stream.echo(now))
        return any(stream.backlog for stream in self._streams.values())

    def _write_activity(self, records: Records) -> None:
        self._activity_at = time.monotonic()
        self._changed = False
        streams = {
            key: {"size": stream.size, "changed": stream.changed}
            for key, stream in self._streams.items()
        }
        document = {"time": time.time(), "ended": self._ended, "streams": streams}
        records.put(self._place.activity, document)

    def drain(self, limit: float, patience: float, hurry: Callable[[], bool]) -> int:
        """Get the rest onto stdout; the bytes that were not.

        Args:
            limit: Longest time for it.
            patience: Longest time without progress.
            hurry: Tells that somebody wants the node to end now.
        """
        begun = moved = time.monotonic()
        left = -1
        while self._outlet.broken is None and not hurry():
            if not self._echo() and self._outlet.has_room:
                for stream in self._streams.values():
                    self._outlet.put(stream.end_echo())
            before, left = left, self._outlet.waiting
            left += sum(stream.backlog for stream in self._streams.values())
            now = time.monotonic()
            if left != before:
                moved = now
            if left == 0 or now - begun > limit or now - moved > patience:
                break
            time.sleep(0.005)
        return max(left, 0)

    def finish(self, records: Records) -> None:
        """Look a last time and say that nothing will change any more."""
        self._ended = True
        for stream in self._streams.values():
            with contextlib.suppress(OSError):
                stream.look()
        self._write_activity(records)
