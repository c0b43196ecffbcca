"""Variables in shell lines and magics: ``{expression}`` and ``$name``, by the rules that notebooks have."""

from __future__ import annotations

import re
import string
import types
from typing import Any

_DOLLAR = re.compile(r"\$(\$?[\w.]+)")


def expand(text: str, frame: types.FrameType) -> str:
    """Put the values of Python expressions into a text; a text that holds anything else in braces stays as it is."""
    names = dict(frame.f_globals)
    names.update(frame.f_locals)
    try:
        return "".join(_pieces(text, names))
    except Exception:  # noqa: BLE001 - any error of user text means that it was no expression: awk '{print $1}'
        return text


def _pieces(text: str, names: dict[str, Any]) -> list[str]:
    found: list[str] = []
    formatter = string.Formatter()
    for literal, expression, form, conversion in formatter.parse(text):
        found.append(_DOLLAR.sub(lambda match: _dollar(match.group(1), names), literal))
        if expression is not None:
            value = eval(expression, names)  # noqa: S307 - the user's own code, in the user's own job
            value = formatter.convert_field(value, conversion) if conversion else value
            found.append(format(value, "".join(_pieces(form, names)) if form else ""))
    return found


def _dollar(name: str, names: dict[str, Any]) -> str:
    """What stands for ``$name``: the variable's value, or the same text for the shell when there is no such variable."""
    if name.startswith("$"):
        return name
    try:
        return str(eval(name, names))  # noqa: S307 - as above
    except Exception:  # noqa: BLE001 - no such variable here: the shell may have it
        return "$" + name
