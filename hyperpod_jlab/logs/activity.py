"""Activity records: one small file a node that tells which of its streams have grown, so that the others stay closed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.logs.stream import Stream

HEARTBEAT = 5.0
"""A launcher that lives writes its record at least this often (seconds)."""

_MAX_RECORD = 4 << 20


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
        with path.open("rb") as file:
            record = json.loads(file.read(_MAX_RECORD))
        streams = {
            Stream(attempt, node_rank, None if name == "node" else int(name)): _stream(entry)
            for name, entry in record["streams"].items()
        }
        return Activity(float(record["time"]), bool(record.get("ended")), streams)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # The record only saves work: without it the files themselves are looked at.
        return None


def _stream(entry: Mapping[str, Any]) -> StreamActivity:
    return StreamActivity(int(entry["size"]), float(entry["changed"]))
