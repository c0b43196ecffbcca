"""JSON with comments and commas at the end, as editors have it: read, and put into without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])")
_MARK = re.compile(rf"{_STRING}|[\[\]{{}}]")


def loads(text: str) -> Any:
    """What the text says.

    Raises:
        json.JSONDecodeError: It is no JSON even without its comments.
    """
    return json.loads(_plain(text))


def append(text: str, key: str, values: Sequence[Any], indent: int | str) -> str:
    """Put values at the end of the list that the outermost object has under a key; all else stays as it is, letter by letter.

    Args:
        text: An object, with a list under the key.
        key: The key.
        values: What comes into the list; at least one.
        indent: How the file is indented.
    """
    plain = _plain(text)
    start = _place(plain, key)
    end = json.JSONDecoder().raw_decode(plain, start)[1] - 1
    bare = _without(_COMMENT, text)[:end].rstrip()
    told = text[:end].rstrip()
    comma = "" if bare[-1] == "," or len(bare) == start + 1 else ","
    step = " " * indent if isinstance(indent, int) else indent
    added = ",\n".join(json.dumps(one, indent=indent, ensure_ascii=False) for one in values)
    lines = "".join(f"\n{2 * step}{line}" for line in added.split("\n"))
    return f"{told[: len(bare)]}{comma}{told[len(bare) :]}{lines}\n{step}{text[end:]}"


def _plain(text: str) -> str:
    """The text as plain JSON, in which all stands where it stood."""
    return _without(_LAST_COMMA, _without(_COMMENT, text))


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text with blanks for what is found outside of strings."""
    return pattern.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def _place(plain: str, key: str) -> int:
    """Where the list under a key of the outermost object begins; the last one, as JSON has it."""
    depth, place = 0, -1
    for found in _MARK.finditer(plain):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
        elif depth == 1 and json.loads(found[0]) == key:
            behind = re.compile(r"\s*:\s*\[").match(plain, found.end())
            place = behind.end() - 1 if behind else place
    return place
