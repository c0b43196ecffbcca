"""The logs of an array: those of all its children as one set of streams, merged and followed like those of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hyperpod_jlab.logs.activity import Activity
from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.source import Origin
from hyperpod_jlab.logs.stream import Stream


@dataclass
class _Child:
    """A child as it was seen last.

    Attributes:
        records: Its own logs.
        streams: Its streams, as the array sees them.
        over: Those to which nothing is added any more.
        stamp: The stamp of the folder in which a further attempt would appear.
    """

    records: RecordStreams
    streams: tuple[Stream, ...] = ()
    over: frozenset[Stream] = frozenset()
    stamp: int = -1

    @property
    def rests(self) -> bool:
        """Whether all that it had was there to its end, so that only a further attempt can be news."""
        return bool(self.streams) and len(self.over) == len(self.streams)


class ArrayStreams:
    """All logs of all children of an array, which appear as the children begin. A `SourceSet`.

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

    @property
    def key(self) -> Path:
        """The folder of the children's records."""
        return self.tasks

    def attempts(self) -> list[int]:
        """All that children do counts as one attempt. Blocking."""
        return [1] if self._indices() else []

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """The streams of all children that exist now, whatever the attempt. Blocking."""
        del attempt
        found: list[Stream] = []
        for index in self._indices():
            found += self._look(index).streams
        return found

    def over(self) -> frozenset[Stream]:
        """The streams to which nothing is added any more, as of when they were last looked for."""
        return frozenset().union(*(child.over for child in self._children.values()))

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
            records = RecordStreams(self.tasks / str(index), self.processes_per_node)
            self._children[index] = _Child(records)
        return self._children[index]

    def _indices(self) -> list[int]:
        """The children that have begun."""
        try:
            names = [path.name for path in self.tasks.iterdir()]
        except OSError:  # none has begun yet
            return []
        return sorted(int(name) for name in names if name.isdecimal())

    def _look(self, index: int) -> _Child:
        """A child as it is now; one that has ended is not gone through again."""
        child = self._known(index)
        stamp = _stamp(child.records.folder(None))
        if child.rests and stamp == child.stamp:
            return child
        streams = child.records.streams()
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
        return child


def _stamp(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return -1
