"""Checks an input of CreateCluster against botocore's model and reports all errors, each with its path.

botocore's own ``ParamValidator`` only checks types, missing members and minima; enums, patterns and maxima would need a second pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from hyperpod_jlab.admin.cluster_config.results import RuleResult, error
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
_KIND_NAMES = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
_CATEGORIES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s", r"\p{Alnum}": "a-zA-Z0-9"}
"""Java's character classes in Python's syntax; Python's are a little wider."""

_MAX_CHOICES = 12
"""Maximum number of allowed values in a message."""


@cache
def create_cluster_shape() -> Any:
    """The shape of CreateCluster's input.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    try:
        import botocore.session
    except ImportError:
        raise boto3_missing() from None
    model = botocore.session.Session().get_service_model("sagemaker")
    return model.operation_model("CreateCluster").input_shape


def _version() -> str:
    import botocore

    return f"botocore {botocore.__version__}"


def problems(value: Any, shape: Any, path: str = "") -> Iterator[RuleResult]:
    """All errors in a value.

    Args:
        value: The value, from JSON.
        shape: Its shape in the model.
        path: Its path in the file.
    """
    kind = shape.type_name
    types, _ = _KINDS[kind]
    # A bool is an int in Python, but not in AWS' model.
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        yield _wrong_type(value, shape, path)
    elif kind == "structure":
        yield from _structure(value, shape, path)
    elif kind == "list":
        yield from _bounds(len(value), shape, path, "items")
        for number, item in enumerate(value):
            yield from problems(item, shape.member, f"{path}[{number}]")
    elif kind == "map":
        yield from _bounds(len(value), shape, path, "entries")
        for name, item in value.items():
            yield from problems(name, shape.key, f"{path}.{name}")
            yield from problems(item, shape.value, f"{path}.{name}")
    elif kind == "string":
        yield from _text(value, shape, path)
    elif kind not in {"boolean", "timestamp"}:
        yield from _bounds(value, shape, path)


def _wrong_type(value: Any, shape: Any, path: str) -> RuleResult:
    found_kind = next((message for kind, message in _KIND_NAMES.items() if isinstance(value, kind)), "a number")
    _, expected_type = _KINDS[shape.type_name]
    hint = None
    if expected_type == "a number" and isinstance(value, float):
        found_kind, expected_type = str(value), "a whole number"
    elif expected_type == "a number" and isinstance(value, str) and value.strip().isdigit():
        hint = f"write it without quotes: {value.strip()}"
    return error(f"must be {expected_type}, not {found_kind}", path, hint)


def _structure(value: dict[str, Any], shape: Any, path: str) -> Iterator[RuleResult]:
    prefix = f"{path}." if path else ""
    for name in shape.required_members:
        if name not in value:
            hint = f"{_version()} requires it; a newer version may not: pip install --upgrade boto3"
            yield error(f"{name} is missing", f"{prefix}{name}", hint)
    for name, member_value in value.items():
        if name in shape.members:
            yield from problems(member_value, shape.members[name], f"{prefix}{name}")
        elif name.startswith("//"):
            yield error("JSON has no comments", f"{prefix}{name}", "remove it")
        else:
            hint = _closest_choice(name, shape.members) or (
                f"valid members: {', '.join(shape.members)} ({_version()}; for newer members: pip install --upgrade boto3)"
            )
            yield error(f"unknown member '{name[:60]}'", f"{prefix}{name}", hint)


def _text(value: str, shape: Any, path: str) -> Iterator[RuleResult]:
    yield from _bounds(len(value), shape, path, "characters")
    title = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(shape.name)).lower()
    allowed, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if allowed and value not in allowed:
        hint = _closest_choice(value, allowed)
        if hint is None and len(allowed) <= _MAX_CHOICES:
            hint = f"valid values: {', '.join(allowed)}"
        elif hint is None:
            hint = f"{_version()} has {len(allowed)} valid values, and none is similar"
        yield error(f"'{value[:60]}' is not a valid {title}", path, hint)
    if pattern and not re.fullmatch(_python_pattern(pattern), value):
        message = f"'{value[:60]}' does not have the form of a {title}"
        yield error(message, path, f"it must match {pattern}")


def _closest_choice(text: str, valid: Any) -> str | None:
    valid_by_lower = {str(choice).lower(): str(choice) for choice in valid}
    closest = nearest(text, valid_by_lower)
    return f"did you mean {valid_by_lower[closest]}?" if closest else None


@cache
def _python_pattern(pattern: str) -> str:
    for aws_class, python_class in _CATEGORIES.items():
        pattern = pattern.replace(aws_class, python_class)
    return pattern


def _bounds(number: float, shape: Any, path: str, subject: str | None = None) -> Iterator[RuleResult]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    message = f"has {number} {subject}" if subject else f"is {number}"
    if low is not None and number < low:
        yield error(f"it {message}, but the minimum is {low}", path)
    if high is not None and number > high:
        yield error(f"it {message}, but the maximum is {high}", path)
