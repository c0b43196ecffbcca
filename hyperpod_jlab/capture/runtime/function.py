"""Loads the function, calls it on every rank, and keeps what rank 0 got."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pickle
import sys
import types
from typing import Any

from . import ending, failure, outcome, records, sources, stacks
from .definitions import register_definitions


def start(names: dict[str, Any]) -> None:
    """Call the function, or give a worker its definitions."""
    for name in ("importlib", "os", "sys", "runner"):
        names.pop(name, None)
    with open(os.path.join(records.CODE, "function.json"), encoding="utf-8") as file:
        plan = json.load(file)
    for path, text in plan["sources"].items():
        sources.remember(path, text)
    if names["__name__"] == "__main__":
        _run(names, plan)
    else:
        _load(names, plan)


def _run(names: dict[str, Any], plan: dict[str, Any]) -> None:
    stacks.answer()
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != records.CODE]
    sys.path.insert(0, os.getcwd())
    locations = failure.SourceLocations()
    first = records.rank() == 0
    if first:
        outcome.forget()
    try:
        function, args, kwargs = _load(names, plan)
        value = function(*args, **kwargs)
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
        if first:
            outcome.save_result(value)
    except BaseException as error:
        failure.release_frames(error, locations)
        if first:
            outcome.save_error(error)
        raise
    finally:
        ending.settle()


async def _await(value: Any) -> Any:
    return await value


def _load(names: dict[str, Any], plan: dict[str, Any]) -> Any:
    """Unpickle the call, with the cloudpickle that wrote it."""
    _check_version(plan["python"])
    library = os.path.join(records.CODE, "lib")
    sys.path.insert(0, library)
    try:
        _register_modules(set(plan["by_value"]))
        with open(os.path.join(records.CODE, "function.pkl"), "rb") as file:
            call = pickle.load(file)  # noqa: S301 - the submitter's own function, in the submitter's own job
    finally:
        sys.path.remove(library)
        sys.path.append(library)  # for processes that are started from here
    register_definitions(call, names, set(plan["by_value"]))
    return call


def _register_modules(by_value: set[str]) -> None:
    """Have modules that travel by value be the modules of this process, so that their classes and functions can be pickled by name."""
    from cloudpickle import cloudpickle

    make = cloudpickle.dynamic_subimport

    def dynamic_subimport(name: str, variables: dict[str, Any]) -> types.ModuleType:
        if name not in by_value:
            value_made: types.ModuleType = make(name, variables)
            return value_made
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__dict__.update(variables)
        return module

    cloudpickle.dynamic_subimport = dynamic_subimport


def _check_version(expected: list[int]) -> None:
    """Say plainly what would otherwise be a crash in byte code."""
    if list(sys.version_info[:2]) != expected[:2]:
        raise RuntimeError(
            f"the function was pickled by Python {expected[0]}.{expected[1]}, but this is Python {sys.version_info[0]}.{sys.version_info[1]}: "
            "use the same version on both sides"
        )
