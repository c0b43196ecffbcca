"""All logs of a node together."""

from __future__ import annotations

import contextlib
import time
from typing import Callable, Dict

from .bundle_files import AttemptPaths, BundleFiles, Records
from .logs import LineEcho, Outlet, Stream


class Streams:
    """All logs of this node: looks at them, keeps the activity record, feeds the launcher's stdout."""

    FAST = 0.05
    SLOW_POLL_S = 0.25
    HEARTBEAT = 5.0

    def __init__(
        self, attempt_paths: AttemptPaths, files: BundleFiles, nodes: int, outlet: Outlet, is_quiet: bool
    ) -> None:
        self._attempt_paths = attempt_paths
        self._files = files
        self._outlet = outlet
        self._is_quiet = is_quiet
        self._streams: Dict[str, Stream] = {}
        # A thousand nodes share one metadata server: each writes more seldom.
        self._activity_every = max(0.25, nodes * 0.004)
        self._activity_written_at = float("-inf")
        self._changed = False
        self._is_closed = False
        self.delay = self.FAST

    def open(self, key: str, path: str, label: str) -> Stream:
        """Take in a log file, made if need be."""
        stream = Stream(self._files, path, None if self._is_quiet else LineEcho(label))
        self._streams[key] = stream
        self._changed = True
        return stream

    def __getitem__(self, key: str) -> Stream:
        return self._streams[key]

    def poll(self, records: Records) -> None:
        """Look at all files, echo, and write the activity record when its time has come."""
        grew = False
        for stream in self._streams.values():
            with contextlib.suppress(OSError):
                grew = stream.poll() or grew
        has_backlog = self._echo()
        self._changed = self._changed or grew
        if has_backlog and self._outlet.has_capacity:
            self.delay = 0.0
        else:
            self.delay = self.FAST if grew or has_backlog else min(max(self.delay, 0.01) * 1.5, self.SLOW_POLL_S)
        elapsed = time.monotonic() - self._activity_written_at
        if elapsed >= (self._activity_every if self._changed else self.HEARTBEAT):
            self._write_activity(records)

    def _echo(self) -> bool:
        """Feed stdout as far as it takes; whether something is left to feed."""
        if self._outlet.broken is not None:
            return False
        now = time.monotonic()
        for stream in self._streams.values():
            if self._outlet.has_capacity:
                self._outlet.put(stream.echo(now))
        return any(stream.backlog for stream in self._streams.values())

    def _write_activity(self, records: Records) -> None:
        self._activity_written_at = time.monotonic()
        self._changed = False
        streams = {key: {"size": stream.size, "changed": stream.changed} for key, stream in self._streams.items()}
        document = {"time": time.time(), "ended": self._is_closed, "streams": streams}
        records.write(self._attempt_paths.activity, document)

    def drain(self, limit: float, pause_limit: float, is_urgent: Callable[[], bool]) -> int:
        """Get the rest onto stdout; the bytes that were not.

        Args:
            limit: Longest time for it.
            pause_limit: Longest time without progress.
            is_urgent: Tells that somebody wants the node to end now.
        """
        started_at = progressed_at = time.monotonic()
        remaining = -1
        while self._outlet.broken is None and not is_urgent():
            if not self._echo() and self._outlet.has_capacity:
                for stream in self._streams.values():
                    self._outlet.put(stream.end_echo())
            previous, remaining = remaining, self._outlet.waiting
            remaining += sum(stream.backlog for stream in self._streams.values())
            now = time.monotonic()
            if remaining != previous:
                progressed_at = now
            if remaining == 0 or now - started_at > limit or now - progressed_at > pause_limit:
                break
            time.sleep(0.005)
        return max(remaining, 0)

    def finish(self, records: Records) -> None:
        """Look a last time and say that nothing will change any more."""
        self._is_closed = True
        for stream in self._streams.values():
            with contextlib.suppress(OSError):
                stream.poll()
        self._write_activity(records)
