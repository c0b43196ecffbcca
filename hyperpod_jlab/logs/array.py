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
"""Children that rest, or have not begun for long, are looked at so many at a time, one after the other."""
_AT_ONCE = 4096
"""Other children are looked at so many at a time at most."""
_YOUNG = 16
"""Looks after which a child without a log is one that has not begun for long."""


@dataclass
class _Child:
    """A child as it was seen last.

    Attributes:
        records: Its own logs.
        streams: Its streams, as the array sees them.
        over: Those to which nothing is added any more.
        stamp: The stamp of the folder in which a further attempt would appear.
        looks: How often it was looked at without a log.
    """

    records: RecordStreams
    streams: tuple[Stream, ...] = ()
    over: frozenset[Stream] = frozenset()
    stamp: int = -1
    looks: int = 0

    @property
    def rests(self) -> bool:
        """Whether all that it had was there to its end, so that only a further attempt can be news."""
        if not self.streams:
            return self.looks > _YOUNG
        return len(self.over) == len(self.streams)


class ArrayStreams:
    """All logs of all children of an array, which appear as the children begin. A `SourceSet`.

    A child is looked at when its folder appears, and again and again while it goes on. Of those that rest some are looked at each time, in turn, so that an array of
    very many children costs little more than the listing of its folder.

    Args:
        tasks: The folder of the children's records; it need not exist yet.
        nodes: Nodes of each child.
        processes_per_node: Ranks on each node.
    """

    def __init__(self, tasks: Path, nodes: int, processes_per_node: int) -> None:
        self.tasks = tasks
        self.processes_per_node = processes_per_node
        self._nodes = nodes
        self._children: dict[int, _Child] = {}
        self._active: dict[int, None] = {}
        self._resting: dict[int, None] = {}
        self._lock = threading.Lock()
        self._turn = 0
        self._bound = Bound(tasks)
        self._listed: list[int] = []
        self._stamps = (-2, -2)
        self._found: list[Stream] = []
        self._over: frozenset[Stream] = frozenset()

    @property
    def key(self) -> Path:
        """The folder of the children's records."""
        return self.tasks

    def attempts(self) -> list[int]:
        """All that children do counts as one attempt. Blocking."""
        self._bound.renew()
        return [1] if self._indices() else []

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """The streams of all children that exist now, whatever the attempt. Blocking."""
        del attempt
        with self._lock:  # who follows and who reads history may ask at the same time
            return self._look_at_all()

    def _look_at_all(self) -> list[Stream]:
        self._turn += 1
        self._bound.renew()
        indices = self._indices()
        news = self._forget_gone(indices)
        seen = self._active.keys() | self._resting.keys()
        new = [index for index in indices if index not in seen]
        for index in (*new, *_some(self._active, _AT_ONCE, self._turn)):
            news = self._look(index) or news
        for index in _some(self._resting, _RESTING, self._turn):
            news = self._look(index) or news
        if news:
            children = [self._known(index) for index in indices]
            self._found = [stream for child in children for stream in child.streams]
            self._over = frozenset().union(*(child.over for child in children))
        return list(self._found)

    def over(self) -> frozenset[Stream]:
        """The streams to which nothing is added any more, as of when they were last looked for."""
        return self._over

    def folder(self, attempt: int | None) -> Path | None:
        """The folder in which the children's folders appear; an attempt has none of its own."""
        return self.tasks if attempt is None else None

    def open(self, stream: Stream) -> BundleFile:
        """A source object of its own for a stream. Opens nothing until it is read."""
        return self._child(stream).records.open(stream.own, known_as=stream)

    def origin(self, stream: Stream) -> Origin:
        """Who writes a stream. Blocking, until the node's name is known."""
        return replace(self._child(stream).records.origin(stream.own), stream=stream)

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        """The newest activity record of a child's node. Blocking."""
        seen = Stream(attempt, node_rank, None)
        index, own = seen.child, seen.own
        if index is None:
            return None
        found = self._child(seen).records.activity(own.attempt, own.node_rank)
        if found is None:
            return None
        streams = {stream.in_array(index): told for stream, told in found.streams.items()}
        return replace(found, streams=streams)

    def _child(self, stream: Stream) -> _Child:
        assert stream.child is not None
        return self._known(stream.child)

    def _known(self, index: int) -> _Child:
        if index not in self._children:
            records = RecordStreams(self.tasks / str(index), self.processes_per_node, self._bound)
            self._children[index] = _Child(records)
        return self._children[index]

    def _indices(self) -> list[int]:
        """The children that have begun. A folder that was the same at two looks one after the other is not listed again."""
        stamp = _stamp(self.tasks)
        if self._stamps != (stamp, stamp) or stamp == -1:
            names = self._bound.names(self.tasks)
            self._listed = sorted(int(name) for name in names if _INDEX.fullmatch(name))
            self._stamps = (self._stamps[1], stamp)
        return self._listed

    def _forget_gone(self, indices: list[int]) -> bool:
        """Forget children whose folders are gone; tells whether there were some."""
        if len(indices) == len(self._active) + len(self._resting):
            return False
        gone = (self._active.keys() | self._resting.keys()) - set(indices)
        for index in gone:
            self._children.pop(index, None)
            self._active.pop(index, None)
            self._resting.pop(index, None)
        return bool(gone)

    def _look(self, index: int) -> bool:
        """Look at a child as it is now; tells whether there is news of it. One that has ended is not gone through again."""
        child = self._known(index)
        stamp = _stamp(child.records.folder(None))
        if child.streams and child.rests and stamp == child.stamp:
            return False
        before = (child.streams, child.over)
        streams = child.records.streams() if stamp >= 0 else []
        child.looks += not streams
        newest = max((stream.attempt for stream in streams), default=0)
        nodes = {stream.node_rank for stream in streams if stream.attempt == newest}
        # A node that is still to come may still open logs.
        ended = len(nodes) == self._nodes and all(
            (found := child.records.activity(newest, node)) is not None and found.ended
            for node in nodes
        )
        if ended:  # what was opened since the look and before the end
            streams = child.records.streams()
        child.streams = tuple(stream.in_array(index) for stream in streams)
        child.over = frozenset(
            stream.in_array(index)
            for stream in streams
            if stream.attempt < newest or (ended and stream.attempt == newest)
        )
        child.stamp = stamp
        mine, other = (
            (self._resting, self._active) if child.rests else (self._active, self._resting)
        )
        other.pop(index, None)
        mine[index] = None
        return before != (child.streams, child.over)


def _some(indices: Iterable[int], most: int, turn: int) -> list[int]:
    """At most so many of them, others each turn."""
    found = list(indices)
    if len(found) <= most:
        return found
    begin = turn * most % len(found)
    return (found[begin:] + found[:begin])[:most]


def _stamp(folder: Path) -> int:
    try:
        return descent.state(folder).st_mtime_ns
    except OSError:
        return -1
