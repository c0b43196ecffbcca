"""The streams in a run's records folder: discovery, names, activity."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic_core import from_json

from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.source import Activity, Origin, read_activity
from hyperpod_jlab.logs.stream import Stream, activity_name, attempt_folder, parse_attempt, parse_stream
from hyperpod_jlab.storage import descent

T = TypeVar("T")

_REOPEN_AFTER_S = 0.2
"""Seconds. Opening a file costs a call to the metadata server of the whole file system; reading an open one does not."""

_MAX_RECORD_BYTES, _MAX_FOREIGN_RECORD_BYTES = 1 << 20, 64 << 10
_MAX_FOREIGN_FILES = 4096
_MAX_FOREIGN_RECORDS_S = 1.0
"""Seconds in one pass for the records of nodes, which only tell names and save reading files."""


class Bound:
    """Limits the folders and names that one pass lists, because another user's run may have any number of them.

    Args:
        path: The run's folder.
    """

    def __init__(self, path: Path) -> None:
        self._max_files = _MAX_FOREIGN_FILES if descent.is_foreign(path) else None
        self.renew()

    def renew(self) -> None:
        """Start a new pass."""
        self._files_left = _MAX_FOREIGN_FILES
        self._seconds_left = _MAX_FOREIGN_RECORDS_S

    def record(self, read: Callable[[], T]) -> T | None:
        """What reading a node's record gives; None if those of this pass have taken too long. Blocking."""
        if self._max_files is None:
            return read()
        if self._seconds_left <= 0:
            return None
        begin = time.monotonic()
        found = read()
        self._seconds_left -= time.monotonic() - begin
        return found

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, up to the limit; empty when it does not exist or is unreadable. Blocking."""
        if self._max_files is not None and self._files_left <= 0:
            return []
        try:
            names = descent.list_names(folder, None if self._max_files is None else self._files_left)
        except OSError:  # an error of the files shows when they are read
            names = []
        self._files_left -= 1 + len(names)
        return names


class RecordStreams:
    """All logs of one run as files, see docs/bundle-format.md. A `SourceSet`.

    Args:
        records: The run's ``<records>`` folder; it may not exist yet.
        processes_per_node: Number of ranks on each node, from which global ranks follow.
        bound: The limit, if shared with other passes.
    """

    def __init__(self, records: Path, processes_per_node: int, bound: Bound | None = None) -> None:
        self.records = records
        self.processes_per_node = processes_per_node
        self._bound = bound or Bound(records)
        self._is_bound_shared = bound is not None
        self._names: dict[tuple[int, int], str] = {}

    @property
    def key(self) -> Path:
        """The run's records folder."""
        return self.records

    def attempts(self) -> list[int]:
        """The attempts that have a log folder, in increasing order. Blocking."""
        self._renew()
        return self._attempts()

    def _attempts(self) -> list[int]:
        numbers = (parse_attempt(name) for name in self._bound.names(self.folder(None)))
        return sorted(attempt for attempt in numbers if attempt is not None)

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """The existing streams of one attempt or of all, in order. Blocking."""
        self._renew()
        streams: list[Stream] = []
        for number in self._attempts() if attempt is None else [attempt]:
            for name in self._bound.names(self.folder(number)):
                stream = parse_stream(number, name)
                if stream is not None:
                    streams.append(stream)
        return sorted(streams, key=lambda stream: stream.sort_key)

    def folder(self, attempt: int | None) -> Path:
        """The folder of an attempt's logs, or the parent of the attempts' folders."""
        logs = self.records / "logs"
        return logs if attempt is None else logs / attempt_folder(attempt)

    def ended_streams(self) -> frozenset[Stream]:
        """None: the run's end is decided elsewhere, and the streams themselves show a later attempt."""
        return frozenset()

    def open(self, stream: Stream, listed_as: Stream | None = None) -> BundleFile:
        """A new source object for a stream, which callers may know under another name. Opens nothing until the first read."""
        path = self.folder(stream.attempt) / stream.file_name
        return BundleFile(listed_as or stream, path, reopen_after=_REOPEN_AFTER_S)

    def origin(self, stream: Stream) -> Origin:
        """The stream's origin. Blocking, until the node's name is known."""
        return Origin(stream, self._node_name(stream), stream.rank(self.processes_per_node))

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        """A node's newest activity record. Blocking."""
        path = self.folder(attempt) / activity_name(node_rank)
        return self._bound.record(lambda: read_activity(path, attempt, node_rank))

    def _renew(self) -> None:
        if not self._is_bound_shared:
            self._bound.renew()

    def _node_name(self, stream: Stream) -> str | None:
        key = (stream.attempt, stream.node_rank)
        if key not in self._names:
            name = self._bound.record(lambda: self._read_node_name(*key))
            if name is None:
                return None
            self._names[key] = name
        return self._names[key]

    def _read_node_name(self, attempt: int, node_rank: int) -> str | None:
        path = self.records / "status" / attempt_folder(attempt) / f"node-{node_rank}.json"
        is_foreign = descent.is_foreign(path)
        try:
            most = _MAX_FOREIGN_RECORD_BYTES if is_foreign else _MAX_RECORD_BYTES
            name = from_json(descent.read(path, most))["node"]
        except (OSError, ValueError, KeyError, TypeError):
            # The node has not reported yet, or its record is damaged, which the run's state shows.
            return None
        return name if isinstance(name, str) and name else None
