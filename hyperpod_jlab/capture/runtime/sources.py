"""Source lines for tracebacks and ``inspect.getsource``."""

from __future__ import annotations

import linecache
import re


def remember(path: str, text: str) -> None:
    """Keep a file's lines, whatever becomes of the file."""
    lines = [line + "\n" for line in re.split(r"\r\n|\r|\n", text)]
    linecache.cache[path] = (len(text), None, lines, path)  # no time of change: it never goes stale
