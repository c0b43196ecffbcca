"""The course of values as one line of text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*#@"


def sparkline(values: Sequence[float | None], highest: float, width: int) -> str:
    """Values as bars between nought and `highest`, one character each; a value that is not there is a gap.

    Args:
        values: The values, in the order of time.
        highest: What a whole bar stands for.
        width: The most characters; of more values each character is the highest of some.
    """
    bars = _BLOCKS if _takes_blocks() else _ASCII
    count = min(width, len(values))
    parts = [
        values[len(values) * at // count : len(values) * (at + 1) // count] for at in range(count)
    ]
    return "".join(_bar(part, highest, bars) for part in parts)


def _bar(part: Sequence[float | None], highest: float, bars: str) -> str:
    known = [value for value in part if value is not None]
    if not known:
        return " "
    share = max(known) / highest if highest > 0 else 0.0
    return bars[max(0, min(len(bars) - 1, int(share * len(bars))))]


def _takes_blocks() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        _BLOCKS.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True
