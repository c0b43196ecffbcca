"""The service models' regular expressions in Python's words: they are Java's, which has classes of characters by Unicode category."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

_CLASS = re.compile(r"\\p\{(\w+)\}")


@cache
def python_pattern(pattern: str) -> str:
    r"""A pattern with each ``\p{...}``, which stands in brackets, as the characters that it means; ``(?i)`` within it is put in front."""
    everywhere = "(?i)" if "(?i)" in pattern else ""
    found = _CLASS.sub(lambda found: _characters(found[1]), pattern)
    return everywhere + found.replace("(?i)", "")


@cache
def _characters(name: str) -> str:
    """A Unicode category, such as ``L`` or ``Zs``, as ranges of characters."""
    if name == "Alnum":
        return "a-zA-Z0-9"
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
