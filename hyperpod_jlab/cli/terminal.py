"""What the terminal is and can: colours, width, and text that cannot play tricks on it."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from hyperpod_jlab.core.text import printable, printable_lines, terminal_text

__all__ = ["is_terminal", "printable", "printable_lines", "safe_text", "wants_colour"]


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at the stream."""
    return not stream.closed and stream.isatty()


def wants_colour(stream: TextIO | None = None) -> bool:
    """Whether to colour: on a terminal, unless ``NO_COLOR``; with ``FORCE_COLOR`` anywhere."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def safe_text(text: str, stream: TextIO | None = None) -> str:
    """Lines of a job or another user for stdout (or another stream): made harmless where that is a terminal, unchanged elsewhere."""
    return terminal_text(text) if is_terminal(stream or sys.stdout) else text
