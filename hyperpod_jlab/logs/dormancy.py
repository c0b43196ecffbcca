"""Which streams need not be looked at: their node's activity record tells when they grow.

Of 512 ranks mostly a few write. The others are put to sleep, and one small file a node is read in their place. It is a help
only: a record that is missing, or not renewed, wakes its streams, and each is looked at now and then anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hyperpod_jlab.logs.activity import HEARTBEAT, Activity
from hyperpod_jlab.logs.pace import GROWTH, SLOW, SWEEP
from hyperpod_jlab.logs.reader import Reader
from hyperpod_jlab.logs.stream import Stream

FEW = 32
"""With no more readers than this nobody sleeps: looking at them is cheap."""

RECORDS_A_SECOND = 200.0
"""Of very many nodes (an array of hundreds) this many records are read a second at the most, to leave looks for the logs."""

_QUIET = 5.0
_FASTEST = 0.25

Node = tuple[int, int]
"""Attempt and node rank."""


@dataclass
class _Watch:
    """One node's record: when to read it next, and when it was last seen to be renewed (monotonic seconds)."""

    due: float
    rest: float = _FASTEST
    time: float = 0.0
    renewed: float = 0.0
    ended: bool = False
    quiet: list[Reader] = field(default_factory=list)

    def alive(self, now: float) -> bool:
        return self.ended or now - self.renewed < 3 * HEARTBEAT


class Dormancy:
    """Puts quiet readers to sleep and wakes them."""

    def __init__(self) -> None:
        self._watches: dict[Node, _Watch] = {}

    def due(self, readers: Mapping[Stream, Reader], now: float) -> list[Node]:
        """The nodes whose records are to be read now; settles who sleeps."""
        if len(readers) <= FEW:
            self._wake(readers.values())
            self._watches.clear()
            return []
        quiet: dict[Node, list[Reader]] = {}
        for stream, reader in readers.items():
            if now - reader.grown > _QUIET:
                quiet.setdefault((stream.attempt, stream.node_rank), []).append(reader)
        for node in self._watches.keys() - quiet.keys():
            del self._watches[node]
        for node, sleepers in quiet.items():
            # A node that was not asked yet is taken to be alive until it has answered.
            watch = self._watches.setdefault(node, _Watch(due=now, renewed=now))
            watch.quiet = sleepers
            if not watch.alive(now):
                self._wake(sleepers)
        found = [(watch.due, node) for node, watch in self._watches.items() if watch.due <= now]
        return [node for _, node in sorted(found)]

    def told(
        self, node: Node, record: Activity | None, readers: Mapping[Stream, Reader], now: float
    ) -> None:
        """Take what a node's record says; wakes the streams that have grown and puts the other quiet ones to sleep."""
        watch = self._watches.get(node)
        if watch is None:
            return
        grown = False
        if record is None:
            watch.renewed = float("-inf")
        else:
            if record.time != watch.time:
                watch.time, watch.renewed, watch.ended = record.time, now, record.ended
            self._wake(each for each in watch.quiet if each.source.stream not in record.streams)
            for stream, activity in record.streams.items():
                reader = readers.get(stream)
                if reader is None:
                    continue
                if activity.size > reader.place.offset:
                    grown = True
                    reader.asleep, reader.due = False, now
                elif not reader.asleep and now - reader.grown > _QUIET and watch.alive(now):
                    reader.asleep, reader.due = True, now + SWEEP
        watch.rest = _FASTEST if grown else min(SLOW, watch.rest * GROWTH)
        watch.due = now + max(watch.rest, len(self._watches) / RECORDS_A_SECOND)

    def next_due(self) -> float:
        """When the next record is to be read (monotonic seconds)."""
        return min((watch.due for watch in self._watches.values()), default=float("inf"))

    @staticmethod
    def _wake(readers: Iterable[Reader]) -> None:
        for reader in readers:
            if reader.asleep:
                reader.asleep, reader.due = False, 0.0
