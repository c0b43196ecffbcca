"""Finding out what in a function or its arguments can't be pickled, and saying it in words."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from hyperpod_jlab.capture.captured import FunctionCall
from hyperpod_jlab.model.errors import InvalidInputError

_DEPTH = 4
_ITEMS = 200

_ADVICE = {
    "generator": "make the generator inside the function",
    "lock": "make the lock inside the function",
    "RLock": "make the lock inside the function",
    "module": "import the module inside the function",
    "socket": "open the connection inside the function",
    "SSLContext": "open the connection inside the function",
    "TextIOWrapper": "open the file inside the function",
    "BufferedReader": "open the file inside the function",
    "BufferedWriter": "open the file inside the function",
}


def explain(call: FunctionCall, error: Exception) -> InvalidInputError:
    """The refusal for a call that could not be pickled."""
    place, culprit = _culprit(call)
    reason = f"{type(error).__name__}: {str(error)[:300]}"
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    what = f"{place}, a {type(culprit).__name__} object," if culprit is not None else "the function"
    advice = _ADVICE.get(
        type(culprit).__name__, "make it inside the function, or pass what it is made from"
    )
    return InvalidInputError(
        f"{what} can't be pickled: {reason}",
        code="not_picklable",
        hint=advice,
        detail={"field": "source", "what": place},
    )


def _culprit(call: FunctionCall) -> tuple[str, Any]:
    """The innermost thing that fails by itself, with the way to it."""
    starts: list[tuple[str, Any]] = [
        (f"argument {position}", value) for position, value in enumerate(call.args, 1)
    ]
    starts += [(f"argument '{name}'", value) for name, value in call.kwargs.items()]
    starts.append(("the function", call.function))
    for place, value in starts:
        if _fails(value):
            return _descend(place, value, set(), 0)
    return "the function", None


def _descend(place: str, value: Any, seen: set[int], depth: int) -> tuple[str, Any]:
    seen.add(id(value))
    if depth < _DEPTH:
        for inner_place, inner in _parts(place, value):
            if id(inner) not in seen and _fails(inner):
                return _descend(inner_place, inner, seen, depth + 1)
    return place, value


def _parts(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.FunctionType):
        yield from _function_parts(place, value)
        return
    if isinstance(value, types.MethodType):
        yield f"the object of {place}", value.__self__
    if isinstance(value, dict):
        for key, inner in list(value.items())[:_ITEMS]:
            yield f"{place}[{key!r:.60}]", inner
    elif isinstance(value, list | tuple | set | frozenset):
        for position, inner in enumerate(list(value)[:_ITEMS]):
            yield f"{place}[{position}]", inner
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and not isinstance(value, type | types.ModuleType):
        for name, inner in list(attributes.items())[:_ITEMS]:
            yield f"{place}.{name}", inner


def _function_parts(place: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=False):
        try:
            yield f"the variable '{name}' of {place}", cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"the variable '{name}' that {place} uses", function.__globals__[name]
    for position, inner in enumerate(function.__defaults__ or ()):
        yield f"default {position + 1} of {place}", inner


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _fails(value: Any) -> bool:
    from cloudpickle import dumps

    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - any __reduce__ may fail in any way, and that is what is asked
        return True
    return False
