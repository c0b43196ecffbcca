"""Giving functions and classes that came by value a place in their modules.

A class that was unpickled by value is found by nobody: `pickle` looks for it by its name when an object of it goes to a worker process.
So it is put where its name says it is. Workers do the same with the same pickle, and both sides agree.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any, Iterator

_DEPTH_FREE = (str, bytes, int, float, complex, bool, type(None))


def adopt(call: Any, names: dict[str, Any], by_value: set[str]) -> None:
    """Put all functions and classes of a call under their names.

    Args:
        call: The unpickled function, arguments and keyword arguments.
        names: The namespace of ``main.py``, for those of ``__main__``.
        by_value: Names of the modules that travelled by value.
    """
    for thing in _definitions(call):
        module, name = thing.__module__, thing.__qualname__
        if "." in name or "<" in name:
            continue
        if module == "__main__":
            names[name] = thing
        elif module in by_value:
            setattr(_module(module), name, thing)


def _module(name: str) -> types.ModuleType:
    """The module of this name: from the project's files when they went along, else an empty one."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    try:
        return importlib.import_module(name)
    except Exception:  # noqa: BLE001 - what its top level does is not what was asked to run; its definitions are here
        made = types.ModuleType(name, "Made by the job's runner from what travelled by value.")
        sys.modules[name] = made
        return made


def _definitions(call: Any) -> Iterator[Any]:
    """All functions and classes that can be reached from a call."""
    pending: list[Any] = [call]
    seen: set[int] = set()
    while pending:
        thing = pending.pop()
        if isinstance(thing, _DEPTH_FREE) or id(thing) in seen:
            continue
        seen.add(id(thing))
        pending += _inside(thing)
        if isinstance(thing, (types.FunctionType, type)) and isinstance(thing.__module__, str):
            yield thing


def _inside(thing: Any) -> list[Any]:
    if isinstance(thing, types.FunctionType):
        found = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        found += [_content(cell) for cell in thing.__closure__ or ()]
        # The namespace of an imported module's function is that whole module; one that came by value has what it uses.
        return found + ([] if _is_imported(thing) else list(thing.__globals__.values()))
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, (staticmethod, classmethod)):
        return [thing.__func__]
    if isinstance(thing, property):
        return [thing.fget, thing.fset, thing.fdel]
    if isinstance(thing, type):
        return [*thing.__bases__, *vars(thing).values()] if _by_value(thing) else []
    if isinstance(thing, (list, tuple, set, frozenset)):
        return list(thing)
    if isinstance(thing, dict):
        return list(thing.values())
    attributes = getattr(thing, "__dict__", None)
    return [
        type(thing),
        *(attributes.values() if isinstance(attributes, dict) and not _is_module(thing) else ()),
    ]


def _is_imported(function: types.FunctionType) -> bool:
    module = sys.modules.get(str(function.__globals__.get("__name__")))
    return module is not None and vars(module) is function.__globals__


def _by_value(kind: type) -> bool:
    """Whether a class is not the one that its module has under its name."""
    module = sys.modules.get(kind.__module__)
    return getattr(module, kind.__qualname__, None) is not kind


def _is_module(thing: Any) -> bool:
    return isinstance(thing, types.ModuleType)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
