"""Checks an input of SageMaker against botocore's model of it and reports all that is wrong, each with its place.

botocore's own `ParamValidator` checks types, missing members and minima only; words, patterns and maxima would need a second walk beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from hyperpod_jlab.admin.cluster_config.document import Verdict
from hyperpod_jlab.aws.errors import boto3_missing
from hyperpod_jlab.core.errors import nearest

_KINDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "structure": ((dict,), "an object"),
    "map": ((dict,), "an object"),
    "list": ((list,), "a list"),
    "string": ((str,), "text"),
    "boolean": ((bool,), "true or false"),
    "integer": ((int,), "a number"),
    "long": ((int,), "a number"),
    "float": ((int, float), "a number"),
    "double": ((int, float), "a number"),
    "timestamp": ((int, float, str), "a number"),
}
_FOUND = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "null",
}
_CATEGORIES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s", r"\p{Alnum}": "a-zA-Z0-9"}
"""Java's character classes in Python's syntax; Python's are a little wider."""

_FEW = 12
"""Allowed words that are listed."""


@cache
def input_shape(operation: str) -> Any:
    """The shape of an operation's input.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    return _service().operation_model(operation).input_shape


@cache
def _service() -> Any:
    try:
        import botocore.session
    except ImportError:
        raise boto3_missing() from None
    return botocore.session.Session().get_service_model("sagemaker")


def _version() -> str:
    import botocore

    return f"botocore {botocore.__version__}"


def _wrong(message: str, at: str, hint: str | None = None) -> Verdict:
    return Verdict("schema", "error", message, hint, at or None)


def problems(value: Any, shape: Any, at: str = "") -> Iterator[Verdict]:
    """All that is wrong with a value.

    Args:
        value: The value, from JSON.
        shape: Its shape in the model.
        at: Its place in the file.
    """
    kind = shape.type_name
    types, _ = _KINDS[kind]
    # A bool is an int in Python, but not in AWS' model.
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        yield _other_kind(value, shape, at)
    elif kind == "structure":
        yield from _structure(value, shape, at)
    elif kind == "list":
        yield from _bounds(len(value), shape, at, "items")
        for number, one in enumerate(value):
            yield from problems(one, shape.member, f"{at}[{number}]")
    elif kind == "map":
        yield from _bounds(len(value), shape, at, "entries")
        for name, one in value.items():
            yield from problems(name, shape.key, f"{at}.{name}")
            yield from problems(one, shape.value, f"{at}.{name}")
    elif kind == "string":
        yield from _text(value, shape, at)
    elif kind not in {"boolean", "timestamp"}:
        yield from _bounds(value, shape, at)


def _other_kind(value: Any, shape: Any, at: str) -> Verdict:
    found = next((words for kind, words in _FOUND.items() if isinstance(value, kind)), "a number")
    _, needed = _KINDS[shape.type_name]
    hint = None
    if needed == "a number" and isinstance(value, float):
        found, needed = str(value), "a whole number"
    elif needed == "a number" and isinstance(value, str) and value.strip().isdigit():
        hint = f"write it without quotes: {value.strip()}"
    return _wrong(f"must be {needed}, not {found}", at, hint)


def _structure(value: dict[str, Any], shape: Any, at: str) -> Iterator[Verdict]:
    prefix = f"{at}." if at else ""
    for name in shape.required_members:
        if name not in value:
            hint = f"{_version()} requires it; a newer version may not: pip install --upgrade boto3"
            yield _wrong(f"{name} is missing", f"{prefix}{name}", hint)
    for name, one in value.items():
        if name in shape.members:
            yield from problems(one, shape.members[name], f"{prefix}{name}")
        elif name.startswith("//"):
            yield _wrong("JSON has no comments", f"{prefix}{name}", "remove it")
        else:
            hint = _meant(name, shape.members) or (
                f"valid members: {', '.join(shape.members)} ({_version()}; for newer members: pip install --upgrade boto3)"
            )
            yield _wrong(f"unknown member '{name[:60]}'", f"{prefix}{name}", hint)


def _text(value: str, shape: Any, at: str) -> Iterator[Verdict]:
    yield from _bounds(len(value), shape, at, "characters")
    title = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(shape.name)).lower()
    allowed, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if allowed and value not in allowed:
        hint = _meant(value, allowed)
        if hint is None and len(allowed) <= _FEW:
            hint = f"valid values: {', '.join(allowed)}"
        elif hint is None:
            hint = f"{_version()} has {len(allowed)} valid values, and none is similar"
        yield _wrong(f"'{value[:60]}' is not a valid {title}", at, hint)
    if pattern and not re.fullmatch(_python(pattern), value):
        words = f"'{value[:60]}' does not have the form of a {title}"
        yield _wrong(words, at, f"it must match {pattern}")


def _meant(word: str, valid: Any) -> str | None:
    known = {str(one).lower(): str(one) for one in valid}
    near = nearest(word, known)
    return f"did you mean {known[near]}?" if near else None


@cache
def _python(pattern: str) -> str:
    for theirs, ours in _CATEGORIES.items():
        pattern = pattern.replace(theirs, ours)
    return pattern


def _bounds(number: float, shape: Any, at: str, of: str | None = None) -> Iterator[Verdict]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    words = f"has {number} {of}" if of else f"is {number}"
    if low is not None and number < low:
        yield _wrong(f"it {words}, but the minimum is {low}", at)
    if high is not None and number > high:
        yield _wrong(f"it {words}, but the maximum is {high}", at)
