"""What the terminal is and can: colours, width, and text that cannot play tricks on it."""

from __future__ import annotations

import os
import sys
from typing import TextIO


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


def printable(text: str) -> str:
    """Text on one line without control characters, so that a name or a message cannot move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escaped(character) for character in text
    )


def printable_lines(text: str) -> str:
    """Text like `printable` makes it, but still over as many lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
