"""Variables in shell lines and magics: ``{expression}`` and ``$name``, by the very rules that notebooks have.

One thing in a line that is no Python variable leaves the whole line as it is, for the shell. A colon in braces slices, it formats
nothing. ``$name`` counts only outside of single quotes, and ``$$name`` is ``$name`` for the shell.
"""

from __future__ import annotations

import re
import string
import types
from typing import Any

_DOLLAR = re.compile(r"\$(\$?[\w.]+)(?=(?:[^']*'[^']*')*[^']*$)")


def expand(text: str, frame: types.FrameType) -> str:
    """Put the values of Python expressions into a text."""
    names = dict(frame.f_globals)
    names.update(frame.f_locals)
    try:
        return "".join(_split_expressions(text, names))
    except Exception:  # noqa: BLE001 - any error of user text means that it was no expression: awk '{print $1}'
        return text


def _split_expressions(text: str, names: dict[str, Any]) -> list[str]:
    parts: list[str] = []
    formatter = string.Formatter()
    for literal, expression, form, conversion in formatter.parse(text):
        parts.append(_DOLLAR.sub(lambda match: _dollar(match.group(1), names), literal))
        if expression is not None:
            value = eval(f"{expression}:{form}" if form else expression, names)  # noqa: S307 - the user's own code
            value = formatter.convert_field(value, conversion) if conversion else value
            parts.append(format(value))
    return parts


def _dollar(name: str, names: dict[str, Any]) -> str:
    return name if name.startswith("$") else format(eval(name, names))  # noqa: S307 - as above
