"""Whether an input is one that an operation of SageMaker takes, by botocore's model of it: all that is wrong, each with its place.

botocore's own check lets pass what is too long, out of a range, of no known word or against a pattern, and stops at AWS' first complaint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from hyperpod_jlab.admin.cluster_config.verdict import Verdict, wrong
from hyperpod_jlab.aws.errors import boto3_missing
from hyperpod_jlab.core.errors import nearest

_KINDS: dict[str, tuple[Any, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str),
}
_WORDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}
_NEEDED = {
    "structure": "an object",
    "map": "an object",
    "list": "a list",
    "string": "a text",
    "boolean": "true or false",
}
_CATEGORIES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s", r"\p{Alnum}": "a-zA-Z0-9"}
"""Java's classes of characters in Python's words; a little more is let pass here than AWS lets pass."""


@cache
def _service() -> Any:
    try:
        import botocore.session
    except ImportError:
        raise boto3_missing() from None
    return botocore.session.Session().get_service_model("sagemaker")


def model_version() -> str:
    """Version of botocore, whose model it is."""
    import botocore

    return str(botocore.__version__)


@cache
def input_shape(operation: str) -> Any:
    """The shape of an operation's input.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    return _service().operation_model(operation).input_shape


def problems_of_new(given: Any) -> Iterator[Verdict]:
    """All that keeps an input from being one of CreateCluster.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    yield from problems(given, input_shape("CreateCluster"))
    scheduler = given.get("Orchestrator") if isinstance(given, dict) else None
    if isinstance(scheduler, dict) and {"Eks", "Slurm"} <= scheduler.keys():
        words = "a cluster is on Eks or on Slurm, and both are named"
        yield wrong("schema", words, "Orchestrator", "leave one of them out")


def problems(value: Any, shape: Any, at: str = "") -> Iterator[Verdict]:
    """All that is wrong with a value.

    Args:
        value: The value, from JSON.
        shape: Its shape in the model.
        at: Where it stands.
    """
    kind = shape.type_name
    if kind == "structure":
        yield from _structure(value, shape, at)
    elif kind == "list":
        yield from _list(value, shape, at)
    elif kind == "map":
        yield from _map(value, shape, at)
    else:
        yield from _scalar(value, shape, at)


def _structure(value: Any, shape: Any, at: str) -> Iterator[Verdict]:
    if not isinstance(value, dict):
        yield _other_kind(value, shape, at)
        return
    for name in shape.required_members:
        if name not in value:
            hint = f"botocore {model_version()} wants it; a newer one may not: pip install --upgrade boto3"
            yield wrong("schema", f"{name} is missing", _joined(at, name), hint)
    for name, one in value.items():
        member = shape.members.get(name)
        if member is not None:
            yield from problems(one, member, _joined(at, name))
        elif not name.startswith("//"):
            near = nearest(name, [one.lower() for one in shape.members])
            meant = next((one for one in shape.members if one.lower() == near), None)
            hint = f"did you mean {meant}?" if meant else _newer(shape)
            yield wrong("schema", f"there is no member {name[:60]}", _joined(at, name), hint)
        else:
            yield wrong("schema", "JSON has no comments", _joined(at, name), "take it out")


def _newer(shape: Any) -> str:
    return (
        f"there are: {', '.join(shape.members)} (botocore {model_version()}; one that is newer than it "
        "needs: pip install --upgrade boto3)"
    )


def _list(value: Any, shape: Any, at: str) -> Iterator[Verdict]:
    if not isinstance(value, list):
        yield _other_kind(value, shape, at)
        return
    yield from _bounds(len(value), shape, at, "items")
    for number, one in enumerate(value):
        yield from problems(one, shape.member, f"{at}[{number}]")


def _map(value: Any, shape: Any, at: str) -> Iterator[Verdict]:
    if not isinstance(value, dict):
        yield _other_kind(value, shape, at)
        return
    yield from _bounds(len(value), shape, at, "entries")
    for name, one in value.items():
        yield from problems(name, shape.key, f"{at}.{name}")
        yield from problems(one, shape.value, f"{at}.{name}")


def _scalar(value: Any, shape: Any, at: str) -> Iterator[Verdict]:
    kind = shape.type_name
    # True is an int to Python, never to AWS.
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield _other_kind(value, shape, at)
        return
    if kind == "string":
        yield from _text(value, shape, at)
    elif kind not in {"boolean", "timestamp"}:
        yield from _bounds(value, shape, at, None)


def _text(value: str, shape: Any, at: str) -> Iterator[Verdict]:
    yield from _bounds(len(value), shape, at, "characters")
    allowed, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if allowed and value not in allowed:
        near = nearest(value, [one.lower() for one in allowed])
        meant = next((one for one in allowed if one.lower() == near), None)
        few = len(allowed) <= 12
        hint = (
            f"did you mean {meant}?"
            if meant
            else (f"there are: {', '.join(allowed)}" if few else None)
        )
        if meant is None and not few:
            hint = f"this botocore ({model_version()}) knows {len(allowed)} such words, and none like it"
        yield wrong("schema", f"'{value[:60]}' is no {_title(shape)}", at, hint)
    if pattern and not re.fullmatch(_python(pattern), value):
        yield wrong(
            "schema",
            f"'{value[:60]}' has not the form of a {_title(shape)}",
            at,
            f"it is to match {pattern}",
        )


def _title(shape: Any) -> str:
    """The shape's name as words, such as ``cluster instance type``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(shape.name)).lower()


@cache
def _python(pattern: str) -> str:
    for theirs, ours in _CATEGORIES.items():
        pattern = pattern.replace(theirs, ours)
    return pattern


def _bounds(number: float, shape: Any, at: str, of: str | None) -> Iterator[Verdict]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    words = f"has {number} {of}" if of else f"is {number}"
    if low is not None and number < low:
        yield wrong("schema", f"it {words}, and the least is {low}", at)
    if high is not None and number > high:
        yield wrong("schema", f"it {words}, and the most is {high}", at)


def _other_kind(value: Any, shape: Any, at: str) -> Verdict:
    found = next((words for kind, words in _WORDS.items() if isinstance(value, kind)), "a number")
    needed = _NEEDED.get(shape.type_name, "a number")
    if needed == "a number" and isinstance(value, float):
        found, needed = str(value), "a whole number"
    hint = None
    if needed == "a number" and isinstance(value, str) and value.strip().isdigit():
        hint = f"write it without quotes: {value.strip()}"
    return wrong("schema", f"it is {found}, and is to be {needed}", at or None, hint)


def _joined(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
