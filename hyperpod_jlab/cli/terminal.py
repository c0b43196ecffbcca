"""Terminal properties: colours, width, and sanitized text."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from hyperpod_jlab.core.text import printable, printable_lines, terminal_text

__all__ = ["is_terminal", "printable", "printable_lines", "safe_text", "wants_colour"]


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal."""
    return not stream.closed and stream.isatty()


def wants_colour(stream: TextIO | None = None) -> bool:
    """Whether to use colours: on a terminal, unless ``NO_COLOR`` is set; anywhere with ``FORCE_COLOR``."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def safe_text(text: str, stream: TextIO | None = None) -> str:
    """Lines of a job or another user for stdout (or another stream): sanitized for a terminal, unchanged elsewhere."""
    return terminal_text(text) if is_terminal(stream or sys.stdout) else text
