"""Reading the two files, and where in them what is wrong stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError

MOST_BYTES = 4 * 1024 * 1024
"""Larger files are no configuration: 100 instance groups with all members are far below it."""


def read_document(path: Path) -> dict[str, Any]:
    """A file's JSON object.

    Raises:
        InvalidInputError: It cannot be read, is no JSON, has a name twice, or is no object.
    """
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _refused(path, f"has {size} bytes, which is too much for a configuration")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, "is no text in UTF-8") from error
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _refused(path, f"is no JSON: {where}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"is no JSON that AWS takes: {error}") from error
    if not isinstance(found, dict):
        raise _refused(path, "has no JSON object at its top")
    return found


def _refused(path: Path, words: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path} {words}", code="bad_file", detail={"field": "file", "file": str(path)}
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: Python would keep the last of two, and nobody would see the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = ", ".join(sorted({name for name in names if names.count(name) > 1}))
        raise ValueError(f"the name {twice} stands there twice in one object")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def placeholders(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Texts that were to be replaced, such as ``${ROLE}`` or ``<role>``: their paths and themselves."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from placeholders(one, f"{at}.{name}" if at else name)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from placeholders(one, f"{at}[{number}]")
    elif isinstance(value, str) and ("${" in value or value.startswith("<")):
        yield at, value
