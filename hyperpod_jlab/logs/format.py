"""How a log line looks: as text behind its rank, and as the JSON object that scripts read."""

from __future__ import annotations

import json
from typing import Any

from hyperpod_jlab.logs.block import LogLine
from hyperpod_jlab.model.run import iso_time


def text_line(line: LogLine) -> str:
    """The line behind its rank, ``3| text``; a node's own log stands behind ``node0|``, a mark between dashes."""
    if line.mark == "attempt":
        return f"--- {line.line} ---"
    prefix = f"node{line.node_rank}" if line.rank is None else str(line.rank)
    return f"{prefix}| --- {line.line} ---" if line.mark else f"{prefix}| {line.line}"


def line_object(line: LogLine) -> dict[str, Any]:
    """The line as plain data: ``{attempt, node, rank, time, line, cursor}``.

    A mark has a further key, ``mark``, which tells its kind; `line` then says it in words.
    """
    plain: dict[str, Any] = {
        "attempt": line.attempt,
        "node": line.node,
        "rank": line.rank,
        "time": iso_time(line.time),
        "line": line.line,
        "cursor": line.cursor,
    }
    if line.mark is not None:
        plain["mark"] = line.mark
    return plain


def json_line(line: LogLine) -> str:
    """The line as one line of JSON."""
    return json.dumps(line_object(line))
