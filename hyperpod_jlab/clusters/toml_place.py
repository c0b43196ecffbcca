"""Where a value stands in a TOML file. Pure. `tomllib` and `tomlkit` do not report positions."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence

Step = str | int
"""A name, or a place in a list."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def steps_to(document: object, field: str) -> tuple[list[Step], str]:
    """The way into a document along a field whose names are joined by dots; names may have dots themselves.

    Args:
        document: The parsed document.
        field: The field.

    Returns:
        The steps as far as the document has them, and the rest of the field. If the steps end at a single value, there is no rest.
    """
    steps: list[Step] = []
    while field:
        if isinstance(document, Mapping):
            names = [name for name in document if f"{field}.".startswith(f"{name}.")]
            if not names:
                break
            step: Step = max(names, key=len)
            document = document[step]
        elif isinstance(document, Sequence) and not isinstance(document, str):
            text = field.partition(".")[0]
            if not text.isdecimal() or int(text) >= len(document):
                break
            step = int(text)
            document = document[step]
        else:
            return steps, ""
        steps.append(step)
        field = field[len(str(step)) + 1 :]
    return steps, field


def written(steps: Sequence[Step]) -> str:
    """Steps as TOML writes them, such as ``cost.prices."ml.p5.48xlarge"``."""
    texts = map(str, steps)
    return ".".join(text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False) for text in texts)


def place_of(text: str, steps: Sequence[Step]) -> tuple[int, int]:
    """The line and column of a value, or of the table that it is in, from 1.

    Args:
        text: A valid TOML document.
        steps: The way to it, which the document has.
    """
    lines = text.splitlines(keepends=True)
    # A statement ends where the lines since the last one are valid by themselves.
    ends = [0]
    for end in range(1, len(lines) + 1):
        if _parse("".join(lines[ends[-1] : end])) is not None:
            ends.append(end)
    found = bisect_left(ends, True, key=lambda end: _has(_parse("".join(lines[:end])) or {}, steps))
    begin, end = ends[found - 1], ends[min(found, len(ends) - 1)]
    statement = "".join(lines[begin:end])
    before = statement[: _offset(statement, steps)]
    line = begin + 1 + before.count("\n")
    return line, len(before) - (before.rfind("\n") + 1) + 1


def _parse(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _has(document: object, steps: Sequence[Step]) -> bool:
    for step in steps:
        if isinstance(document, Mapping):
            if step not in document:
                return False
            document = document[step]
        elif isinstance(document, list):
            if not isinstance(step, int) or step >= len(document):
                return False
            document = document[step]
        else:
            return False
    return True


def _offset(statement: str, steps: Sequence[Step]) -> int:
    """Where the value begins in its statement; names that stand in the table's header are not in it."""
    offset = len(statement) - len(statement.lstrip())
    skipped = 0
    for step in steps:
        if isinstance(step, int):
            skipped = step
            continue
        name = re.escape(step)
        key = re.compile(rf"""(?<![\w."'-])(?:[\w-]+\.)*(?:"{name}"|'{name}'|{name})[ \t]*=[ \t]*""")
        matches = list(key.finditer(statement, offset))
        if matches:
            offset = matches[min(skipped, len(matches) - 1)].end()
        skipped = 0
    return offset
