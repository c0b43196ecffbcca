"""How a log line looks to scripts: one JSON object. As text it is ``str(line)``."""

from __future__ import annotations

import json
from typing import Any

from hyperpod_jlab.core.wire import iso_time
from hyperpod_jlab.logs.lines import LogLine


def line_object(line: LogLine) -> dict[str, Any]:
    """The line as plain data: ``{attempt, node, rank, time, line, cursor}``.

    A mark has a further key, ``mark``, which tells its kind; `line` then says it in words. A line of an array's log has
    ``index``, the child's. Of a line that comes in pieces all but the last have ``partial``, all but the first ``continued``.
    """
    plain: dict[str, Any] = {
        "attempt": line.attempt,
        "node": line.node,
        "rank": line.rank,
        "time": iso_time(line.time),
        "line": line.line,
        "cursor": line.cursor,
    }
    if line.index is not None:
        plain["index"] = line.index
    if line.continued:
        plain["continued"] = True
    if line.partial:
        plain["partial"] = True
    if line.mark is not None:
        plain["mark"] = line.mark
    return plain


def json_line(line: LogLine) -> str:
    """The line as one line of JSON."""
    return json.dumps(line_object(line))
