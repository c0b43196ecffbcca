"""How much a run's log has grown over time, from the time indexes beside the logs: no log is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.logs.source import LogSource, SourceSet
from hyperpod_jlab.logs.stream import Stream

_MAX_STREAMS = 64
"""Logs whose indexes are read; of more, evenly spaced ones."""


@dataclass(frozen=True)
class Histogram:
    """A log over time, in buckets of equal length.

    Attributes:
        begin: When the first bucket begins (Unix seconds); None if times are unknown.
        end: When the last bucket ends.
        sizes: Bytes written in each bucket, by the logs that were read.
        matches: Matching lines in each bucket; empty without a pattern.
        matches_until: Later lines were not searched, because the search reached its limits; None
            when all were.
        logs: Number of logs that were read.
        logs_total: Number of logs.
    """

    begin: float | None
    end: float | None
    sizes: list[int]
    matches: list[int]
    matches_until: float | None
    logs: int
    logs_total: int

    def bucket(self, time: float) -> int:
        """The bucket of a time."""
        assert self.begin is not None
        assert self.end is not None
        count = len(self.sizes)
        position = int((time - self.begin) / (self.end - self.begin) * count)
        return min(max(position, 0), count - 1)


def count_bytes(sources: SourceSet, streams: Sequence[Stream], buckets: int) -> Histogram:
    """The histogram, without matches. Blocking."""
    step = max(1, -(-len(streams) // _MAX_STREAMS))
    opened = [sources.open(stream) for stream in streams[::step]]
    spans = [span for source in opened if (span := _span(source)) is not None]
    total = len(streams)
    if not spans:
        return Histogram(None, None, [], [], None, 0, total)
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    end = max(end, begin + 1.0)
    edges = [begin + (end - begin) * number / buckets for number in range(1, buckets)]
    sizes = [0] * buckets
    for source in opened:
        size = source.size()
        offsets = [0, *(min(size, source.offset_at(edge) or 0) for edge in edges), size]
        for number in range(buckets):
            sizes[number] += max(0, offsets[number + 1] - offsets[number])
        source.close()
    return Histogram(begin, end, sizes, [], None, len(opened), total)


def _span(source: LogSource) -> tuple[float, float] | None:
    """When a log's first and last bytes were written, or None when unknown."""
    size = source.size()
    first = source.stamps(0, 1) if size else []
    last = source.stamps(size - 1, size) if first else []
    return (first[0][1], last[0][1]) if last else None
