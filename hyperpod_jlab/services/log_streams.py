"""Which logs a run has: what can be chosen, how long each is, and who has fallen silent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hyperpod_jlab.logs.activity import Activity
from hyperpod_jlab.logs.source import SourceSet
from hyperpod_jlab.logs.stream import Stream

SILENCE = 60.0
"""A rank is silent when it has said nothing for so long (seconds) until another one of its attempt said something."""

_TRUSTED = 15.0  # seconds: an activity record that is older may be of a launcher that is dead


@dataclass(frozen=True)
class LogStream:
    """One log.

    Attributes:
        attempt: Its attempt, from 1.
        node_rank: Its node's rank.
        node: Its node's name, or ``node-R`` while that is unknown.
        rank: Its global rank; None for a node's own log.
        local_rank: Its rank on the node; None for a node's own log.
        index: In an array the index of the child; None otherwise.
        size: Its length in bytes.
        last_at: When it last grew (Unix seconds); None when nobody knows.
        silent: Whether it is a rank's that has fallen silent while others have not.
    """

    attempt: int
    node_rank: int
    node: str
    rank: int | None
    local_rank: int | None
    index: int | None
    size: int
    last_at: float | None
    silent: bool = False


def log_streams(sources: SourceSet) -> dict[int, list[LogStream]]:
    """The logs of a run by attempt, each in the order of ranks. May block."""
    together: dict[tuple[int, int | None], list[LogStream]] = {}
    for found in _look(sources):
        together.setdefault((found.attempt, found.index), []).append(found)
    attempts: dict[int, list[LogStream]] = {}
    for attempt, index in sorted(together, key=lambda key: (key[0], key[1] or 0)):
        # A child of an array that has ended is not silent because others go on.
        attempts.setdefault(attempt, []).extend(_with_silence(together[attempt, index]))
    return attempts


def _look(sources: SourceSet) -> Iterator[LogStream]:
    records: dict[tuple[int, int], Activity | None] = {}
    for stream in sources.streams():
        key = (stream.attempt, stream.node_rank)
        if key not in records:
            records[key] = sources.activity(*key)
        origin = sources.origin(stream)
        own = stream.own
        size, last_at = _size(sources, stream, records[key])
        yield LogStream(
            attempt=own.attempt,
            node_rank=own.node_rank,
            node=origin.node or f"node-{own.node_rank}",
            rank=origin.rank,
            local_rank=own.local_rank,
            index=stream.child,
            size=size,
            last_at=last_at,
        )


def _size(sources: SourceSet, stream: Stream, record: Activity | None) -> tuple[int, float | None]:
    """From the node's record where one can rely on it: no file has to be looked at then."""
    if record is not None and (record.ended or time.time() - record.time < _TRUSTED):
        told = record.streams.get(stream)
        if told is not None:
            return told.size, told.changed
    source = sources.open(stream)
    try:
        return source.size(), source.changed()
    finally:
        source.close()


def _with_silence(streams: list[LogStream]) -> list[LogStream]:
    spoken = [
        found.last_at for found in streams if found.rank is not None and found.last_at is not None
    ]
    newest, first = max(spoken, default=0.0), min(spoken, default=0.0)
    return [
        replace(
            found,
            silent=found.rank is not None
            and newest - (found.last_at if found.last_at is not None else first) > SILENCE,
        )
        for found in streams
    ]
