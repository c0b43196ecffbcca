"""Activity records: one small file a node that tells which of its streams have grown, so that the others stay closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.storage import descent

HEARTBEAT = 5.0
"""A launcher that lives writes its record at least this often (seconds)."""

_MAX_RECORD = 4 << 20
_MAX_FOREIGN = 64 << 10


@dataclass(frozen=True, slots=True)
class StreamActivity:
    """How long a stream is (bytes) and when that last changed (Unix seconds)."""

    size: int
    changed: float


@dataclass(frozen=True, slots=True)
class Activity:
    """One node's record: when it was written (Unix seconds), whether it is the last one, and its streams."""

    time: float
    ended: bool
    streams: Mapping[Stream, StreamActivity]


def read_activity(path: Path, attempt: int, node_rank: int) -> Activity | None:
    """A node's activity record, or None when there is none that can be understood. Blocking."""
    try:
        record = from_json(
            descent.read(path, _MAX_FOREIGN if descent.is_foreign(path) else _MAX_RECORD)
        )
        streams = {
            Stream(attempt, node_rank, None if name == "node" else int(name)): _stream(entry)
            for name, entry in record["streams"].items()
        }
        return Activity(float(record["time"]), bool(record.get("ended")), streams)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        # The record only saves work: without it the files themselves are looked at.
        return None


def _stream(entry: Mapping[str, Any]) -> StreamActivity:
    return StreamActivity(int(entry["size"]), float(entry["changed"]))
