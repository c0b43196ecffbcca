"""Source lines for tracebacks and ``inspect.getsource``."""

from __future__ import annotations

import linecache


def remember(path: str, text: str) -> None:
    """Keep a file's lines, whatever becomes of the file."""
    lines = [line + "\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    linecache.cache[path] = (len(text), None, lines, path)  # no time of change: it never goes stale
