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


def register_definitions(call: Any, names: dict[str, Any], by_value: set[str]) -> None:
    """Put all functions and classes of a call under their names.

    Args:
        call: The unpickled function, arguments and keyword arguments.
        names: The namespace of ``main.py``, for those of ``__main__``.
        by_value: Names of the modules that travelled by value.
    """
    for value in _definitions(call):
        module, name = value.__module__, value.__qualname__
        if "." in name or "<" in name:
            continue
        if module == "__main__":
            names[name] = value
        elif module in by_value:
            setattr(_module(module), name, value)


def _module(name: str) -> types.ModuleType:
    """The module of this name: from the project's files when they went along, else an empty one."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    try:
        return importlib.import_module(name)
    except Exception:  # noqa: BLE001 - what its top level does is not what was asked to run; its definitions are here
        module = types.ModuleType(name, "Made by the job's runner from what travelled by value.")
        sys.modules[name] = module
        return module


def _definitions(call: Any) -> Iterator[Any]:
    """All functions and classes that can be reached from a call."""
    pending: list[Any] = [call]
    seen_ids: set[int] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, _DEPTH_FREE) or id(value) in seen_ids:
            continue
        seen_ids.add(id(value))
        pending += _referenced_values(value)
        if isinstance(value, (types.FunctionType, type)) and isinstance(value.__module__, str):
            yield value


def _referenced_values(value: Any) -> list[Any]:
    if isinstance(value, types.FunctionType):
        referenced = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        referenced += [_content(cell) for cell in value.__closure__ or ()]
        # The namespace of an imported module's function is that whole module; one that came by value has what it uses.
        return referenced + ([] if _is_imported(value) else list(value.__globals__.values()))
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, type):
        return [*value.__bases__, *vars(value).values()] if _is_by_value(value) else []
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    attributes = getattr(value, "__dict__", None)
    return [type(value), *(attributes.values() if isinstance(attributes, dict) and not _is_module(value) else ())]


def _is_imported(function: types.FunctionType) -> bool:
    module = sys.modules.get(str(function.__globals__.get("__name__")))
    return module is not None and vars(module) is function.__globals__


def _is_by_value(kind: type) -> bool:
    """Whether a class is not the one that its module has under its name."""
    module = sys.modules.get(kind.__module__)
    return getattr(module, kind.__qualname__, None) is not kind


def _is_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
