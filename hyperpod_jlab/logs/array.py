"""The logs of an array: those of all its children as one set of streams, merged and followed like those of one run."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.records import Bound, RecordStreams
from hyperpod_jlab.logs.source import Activity, Origin
from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.storage import descent

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

_RESTING = 1024
"""Number of children checked per pass, in turn, among those that are complete or have long had no log."""
_MAX_CHILDREN_PER_PASS = 4096
"""Maximum number of other children checked per pass."""
_NEW_CHILD_LOOKS = 16
"""Number of checks without a log after which a child counts as long not started."""


@dataclass
class _Child:
    """A child's last known state.

    Attributes:
        records: Its own logs.
        streams: Its streams, as the array sees them.
        ended_streams: Completed streams.
        mtime: The modification time of the folder in which a further attempt would appear.
        check_count: The number of checks without a log.
    """

    records: RecordStreams
    streams: tuple[Stream, ...] = ()
    ended_streams: frozenset[Stream] = frozenset()
    mtime: int = -1
    check_count: int = 0

    @property
    def rests(self) -> bool:
        """Whether all of its logs were complete, so that only a further attempt can add something."""
        if not self.streams:
            return self.check_count > _NEW_CHILD_LOOKS
        return len(self.ended_streams) == len(self.streams)


class ArrayStreams:
    """All logs of all children of an array, which appear as the children start. A `SourceSet`.

    A child is checked when its folder appears, and repeatedly while it runs. Of the complete ones,
    a few are checked each time, in turn, so that an array with very many children costs little more
    than the listing of its folder.

    Args:
        tasks: The folder of the children's records; it need not exist yet.
        nodes: Nodes of each child.
        processes_per_node: Number of ranks on each node.
    """

    def __init__(self, tasks: Path, nodes: int, processes_per_node: int) -> None:
        self.tasks = tasks
        self.processes_per_node = processes_per_node
        self._nodes = nodes
        self._children: dict[int, _Child] = {}
        self._active: dict[int, None] = {}
        self._resting: dict[int, None] = {}
        self._lock = threading.Lock()
        self._pass_number = 0
        self._bound = Bound(tasks)
        self._listed_indices: list[int] = []
        self._stamps = (-2, -2)
        self._streams: list[Stream] = []
        self._ended_streams: frozenset[Stream] = frozenset()

    @property
    def key(self) -> Path:
        """The folder of the children's records."""
        return self.tasks

    def attempts(self) -> list[int]:
        """The children's attempts count as one attempt. Blocking."""
        self._bound.renew()
        return [1] if self._indices() else []

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """The streams of all existing children, whatever the attempt. Blocking."""
        del attempt
        with self._lock:  # followers and history readers may call this at the same time
            return self._check_all()

    def _check_all(self) -> list[Stream]:
        self._pass_number += 1
        self._bound.renew()
        indices = self._indices()
        has_changed = self._forget_removed(indices)
        known_indices = self._active.keys() | self._resting.keys()
        new = [index for index in indices if index not in known_indices]
        for index in (*new, *_pick(self._active, _MAX_CHILDREN_PER_PASS, self._pass_number)):
            has_changed = self._check(index) or has_changed
        for index in _pick(self._resting, _RESTING, self._pass_number):
            has_changed = self._check(index) or has_changed
        if has_changed:
            children = [self._get_child(index) for index in indices]
            self._streams = [stream for child in children for stream in child.streams]
            self._ended_streams = frozenset().union(*(child.ended_streams for child in children))
        return list(self._streams)

    def ended_streams(self) -> frozenset[Stream]:
        """The completed streams, as of the last check."""
        return self._ended_streams

    def folder(self, attempt: int | None) -> Path | None:
        """The folder in which the children's folders appear; attempts have none."""
        return self.tasks if attempt is None else None

    def open(self, stream: Stream) -> BundleFile:
        """A new source object for a stream. Opens nothing until the first read."""
        return self._child(stream).records.open(stream.without_child, listed_as=stream)

    def origin(self, stream: Stream) -> Origin:
        """The stream's origin. Blocking, until the node's name is known."""
        return replace(self._child(stream).records.origin(stream.without_child), stream=stream)

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        """The newest activity record of a child's node. Blocking."""
        node_stream = Stream(attempt, node_rank, None)
        index, own_stream = node_stream.child, node_stream.without_child
        if index is None:
            return None
        record = self._child(node_stream).records.activity(own_stream.attempt, own_stream.node_rank)
        if record is None:
            return None
        streams = {stream.in_array(index): activity for stream, activity in record.streams.items()}
        return replace(record, streams=streams)

    def _child(self, stream: Stream) -> _Child:
        assert stream.child is not None
        return self._get_child(stream.child)

    def _get_child(self, index: int) -> _Child:
        if index not in self._children:
            records = RecordStreams(self.tasks / str(index), self.processes_per_node, self._bound)
            self._children[index] = _Child(records)
        return self._children[index]

    def _indices(self) -> list[int]:
        """The children that have started. A folder that was unchanged in two consecutive checks is not listed again."""
        mtime = _mtime(self.tasks)
        if self._stamps != (mtime, mtime) or mtime == -1:
            names = self._bound.names(self.tasks)
            self._listed_indices = sorted(int(name) for name in names if _INDEX.fullmatch(name))
            self._stamps = (self._stamps[1], mtime)
        return self._listed_indices

    def _forget_removed(self, indices: list[int]) -> bool:
        """Remove children whose folders are gone; returns whether there were any."""
        if len(indices) == len(self._active) + len(self._resting):
            return False
        removed = (self._active.keys() | self._resting.keys()) - set(indices)
        for index in removed:
            self._children.pop(index, None)
            self._active.pop(index, None)
            self._resting.pop(index, None)
        return bool(removed)

    def _check(self, index: int) -> bool:
        """Check a child; returns whether it has changed. One that has ended is not read again until its folder changes."""
        child = self._get_child(index)
        mtime = _mtime(child.records.folder(None))
        if child.streams and child.rests and mtime == child.mtime:
            return False
        previous = (child.streams, child.ended_streams)
        streams = child.records.streams() if mtime >= 0 else []
        child.check_count += not streams
        newest = max((stream.attempt for stream in streams), default=0)
        nodes = {stream.node_rank for stream in streams if stream.attempt == newest}
        # A node that has not started yet may still open logs.
        has_ended = len(nodes) == self._nodes and all(
            (record := child.records.activity(newest, node)) is not None and record.ended for node in nodes
        )
        if has_ended:  # streams that were opened between the check and the end
            streams = child.records.streams()
        child.streams = tuple(stream.in_array(index) for stream in streams)
        child.ended_streams = frozenset(
            stream.in_array(index)
            for stream in streams
            if stream.attempt < newest or (has_ended and stream.attempt == newest)
        )
        child.mtime = mtime
        own_count, other_count = (self._resting, self._active) if child.rests else (self._active, self._resting)
        other_count.pop(index, None)
        own_count[index] = None
        return previous != (child.streams, child.ended_streams)


def _pick(indices: Iterable[int], limit: int, pass_number: int) -> list[int]:
    """At most this many of them, different ones each turn."""
    picked = list(indices)
    if len(picked) <= limit:
        return picked
    begin = pass_number * limit % len(picked)
    return (picked[begin:] + picked[:begin])[:limit]


def _mtime(folder: Path) -> int:
    try:
        return descent.state(folder).st_mtime_ns
    except OSError:
        return -1
