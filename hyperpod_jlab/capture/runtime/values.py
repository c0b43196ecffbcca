"""Values of the notebook's variables for worker processes that are started by spawn or forkserver.

A forked worker sees them anyway. The other kinds import ``main.py`` again; what `replay` passes over then comes from here: whenever a
worker is about to be started, the main process writes down the variables that the notebook's functions and classes mention.
"""

from __future__ import annotations

import ast
import atexit
import io
import multiprocessing.spawn
import os
import pickle
import shutil
import sys
import tempfile
import types
from typing import Any, Callable

from . import records
from .cells import Cell
from .replay import MissingValue, used_names

VARIABLE = "HYPERPOD_WORKER_VALUES"
MAX_BYTES = 16 * 1024 * 1024
"""Largest pickle of one variable; what is larger is passed to a worker as an argument, or read there."""

_ARRAYS = ("cupy", "jax", "numpy", "pandas", "torch")


class _TooLargeError(Exception):
    """The value does not travel; its text says why."""


class _Bounded(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + len(data) > MAX_BYTES:
            raise _TooLargeError(f"it is larger than {MAX_BYTES >> 20} MiB")
        return super().write(data)


class _Pickler(pickle.Pickler):
    """Refuses arrays that are large or lie on an accelerator before they are copied."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj).__module__.partition(".")[0] in _ARRAYS:
            device = getattr(getattr(obj, "device", None), "type", "cpu")
            if device not in ("cpu", "meta"):
                raise _TooLargeError(f"it is on an accelerator ({device})")
            size = getattr(obj, "nbytes", 0)
            if isinstance(size, int) and size > MAX_BYTES:
                raise _TooLargeError(f"it is larger than {MAX_BYTES >> 20} MiB")
        return NotImplemented


class Writer:
    """In the main process: writes the values down each time that a worker is about to be started."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._wanted_names: set[str] = set()
        self._cells: list[tuple[int, str, str]] = []
        self._folder: str | None = None
        self._main = os.getpid()

    def add(self, cell: Cell, text: str, tree: ast.Module) -> None:
        """Some Python of a cell is about to run; with its syntax tree."""
        self._cells.append((cell.number, cell.path, text))
        self._wanted_names |= used_names(tree)

    def install(self) -> None:
        """Hook into the one place where `multiprocessing` gets ready to start a worker by spawn or forkserver."""
        original = multiprocessing.spawn.get_preparation_data

        def get_preparation_data(name: str) -> dict[str, Any]:
            if os.getpid() == self._main:
                self._write()
            return original(name)

        multiprocessing.spawn.get_preparation_data = get_preparation_data

    def _write(self) -> None:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="hyperpod-values-")
            atexit.register(self._remove, self._folder)
            os.environ[VARIABLE] = os.path.join(self._folder, "values.pkl")
        values: dict[str, bytes] = {}
        failed: dict[str, str] = {}
        for name in sorted(self._wanted_names & self._names.keys()):
            value = self._names[name]
            if name.startswith("__") or _is_definition(value):
                continue
            try:
                values[name] = _dump(value)
            except Exception as error:  # noqa: BLE001 - any __reduce__ may fail in any way
                failed[name] = str(error) if isinstance(error, _TooLargeError) else _error_text(error)
        document = {"cells": self._cells, "values": values, "failed": failed}
        path = os.path.join(self._folder, "values.pkl")
        records.write_bytes(path, pickle.dumps(document))

    def _remove(self, folder: str) -> None:
        if os.getpid() == self._main:
            shutil.rmtree(folder, ignore_errors=True)


def _is_definition(value: Any) -> bool:
    """Whether workers get it by running the notebook's definitions, or by its name."""
    if isinstance(value, (type, types.FunctionType)):
        return getattr(value, "__module__", None) == "__main__"
    return isinstance(value, (types.BuiltinFunctionType, MissingValue))


def _dump(value: Any) -> bytes:
    if isinstance(value, types.ModuleType):
        return pickle.dumps(_ModuleName(value.__name__))
    buffer = _Bounded()
    _Pickler(buffer, protocol=4).dump(value)
    return buffer.getvalue()


class _ModuleName:
    """A module, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return _module, (self._name,)


def _module(name: str) -> Any:
    __import__(name)
    return sys.modules[name]


def _error_text(error: Exception) -> str:
    return f"it cannot be pickled ({type(error).__name__}: {str(error)[:200]})"


class Reader:
    """In a worker: gives the values that the main process wrote down."""

    def __init__(self) -> None:
        self.cells: list[tuple[int, str, str]] = []
        """Number, file and Python of what has run in the main process."""
        self._values: dict[str, bytes] = {}
        self._failed: dict[str, str] = {}
        path = os.environ.get(VARIABLE)
        if path and os.path.exists(path):
            with open(path, "rb") as file:
                document = pickle.load(file)  # noqa: S301 - written by the parent, in a folder of mode 0700
            self.cells = document["cells"]
            self._values, self._failed = document["values"], document["failed"]

    def give(self, name: str, cell: int, problem: str | None = None) -> Any:
        """A variable's value, or what stands for it."""
        reason = problem or self._failed.get(name)
        if name in self._values and problem is None:
            try:
                return pickle.loads(self._values[name])  # noqa: S301 - as above
            except Exception as error:  # noqa: BLE001 - any __setstate__ may fail in any way
                reason = f"{type(error).__name__}: {error}"
        return MissingValue(
            "{} is set by cell {} of the notebook and does not exist in this worker process{}: pass it to the worker as an argument or "
            "attribute, or create it in a function".format(name, cell, f" ({reason})" if reason else "")
        )

    def known_names(self) -> list[str]:
        """Names of which the main process wrote down a value, or why it could not."""
        return [*self._values, *self._failed]
