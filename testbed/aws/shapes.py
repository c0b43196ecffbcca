"""Strict checks of values against the shapes of botocore's service models.

botocore's own validator lets pass what is too long, out of a range or of no known word; AWS does not, and neither does this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from testbed.aws.patterns import python_pattern

_SCALARS: dict[str, tuple[Any, ...]] = {
    "string": (str,),
    "character": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "blob": (bytes,),
}


def problems(value: Any, shape: Any, *, wire: bool, at: str = "") -> Iterator[str]:
    """What is wrong with a value, a sentence each.

    Args:
        value: The value.
        shape: Its shape in the model (None: nothing may be given).
        wire: Whether times are numbers, as JSON carries them, instead of aware datetimes.
        at: Where the value stands.
    """
    if shape is None:
        if value:
            yield f"{at or 'the input'}: nothing may be given"
        return
    kind = shape.type_name
    if kind == "structure":
        yield from _structure(value, shape, wire=wire, at=at)
    elif kind == "list":
        if not isinstance(value, list):
            yield f"{at}: {_kind(value)} is no list"
            return
        yield from _bounds(len(value), shape, f"{at}: the number of its items")
        for number, item in enumerate(value):
            yield from problems(item, shape.member, wire=wire, at=f"{at}[{number}]")
    elif kind == "map":
        if not isinstance(value, dict):
            yield f"{at}: {_kind(value)} is no map"
            return
        yield from _bounds(len(value), shape, f"{at}: the number of its entries")
        for key, item in value.items():
            yield from problems(key, shape.key, wire=wire, at=f"{at}: the key {key!r}")
            yield from problems(item, shape.value, wire=wire, at=f"{at}[{key!r}]")
    elif kind == "timestamp":
        yield from _time(value, wire=wire, at=at)
    else:
        yield from _scalar(value, shape, at)


def _structure(value: Any, shape: Any, *, wire: bool, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at or 'the input'}: {_kind(value)} is no structure"
        return
    for name in shape.required_members:
        if name not in value:
            yield f"{_joined(at, name)}: is missing"
    if shape.is_tagged_union and len(value) != 1:
        yield f"{at}: exactly one of {', '.join(shape.members)} must be given"
    for name, item in value.items():
        member = shape.members.get(name)
        if member is None:
            yield f"{_joined(at, name)}: there is no such member"
        else:
            yield from problems(item, member, wire=wire, at=_joined(at, name))


def _scalar(value: Any, shape: Any, at: str) -> Iterator[str]:
    kind = shape.type_name
    types = _SCALARS[kind]
    # True is an int to Python, never to AWS.
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{at}: {_kind(value)} is no {kind}"
        return
    if kind == "string":
        yield from _bounds(len(value), shape, f"{at}: its length")
        allowed, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
        if allowed and value not in allowed:
            yield f"{at}: {value!r} is none of {', '.join(allowed)}"
        if pattern and not re.fullmatch(python_pattern(pattern), value):
            yield f"{at}: {value!r} does not match {pattern}"
    elif kind not in {"boolean", "blob"}:
        yield from _bounds(value, shape, at)


def _time(value: Any, *, wire: bool, at: str) -> Iterator[str]:
    if wire and (isinstance(value, bool) or not isinstance(value, (int, float))):
        yield f"{at}: {_kind(value)} is no time (seconds since 1970)"
    elif not wire and not (isinstance(value, datetime) and value.tzinfo):
        yield f"{at}: {_kind(value)} is no time with a time zone"


def _bounds(value: float, shape: Any, words: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and value < low:
        yield f"{words} is {value}, less than {low}"
    if high is not None and value > high:
        yield f"{words} is {value}, more than {high}"


def _joined(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
