"""Which names a cell takes from what ran before it: read from its compiled code, so that scopes are Python's own."""

from __future__ import annotations

import ast
import builtins
import dis
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

from hyperpod_jlab.capture.notebook import CodeCell
from hyperpod_jlab.capture.transform import transform_cell
from hyperpod_jlab.capture.verdict import SERVICE

_IN_EVERY_JOB = {*dir(builtins), SERVICE, "display", "get_ipython"}
_TAKES_ALL = f"{SERVICE}.run("  # %run takes the file's variables over
_STORES = {"STORE_NAME", "STORE_GLOBAL"}
_LOADS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}


@dataclass(frozen=True)
class Names:
    """The names of one cell.

    Attributes:
        wanted: Those that must be there before it runs.
        wanted_later: Those that its functions and classes use.
        bound: Those that it makes.
        open: Whether it may make others that cannot be seen: by a star import or ``%run``.
    """

    wanted: frozenset[str] = frozenset()
    wanted_later: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    open: bool = False


def names_of(text: str) -> Names:
    """The names of a cell whose magics were replaced; none when it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(
                text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Names(open=True)
    wanted: set[str] = set()
    bound: set[str] = set()
    later: set[str] = set()
    for inner in _inner(code):
        loads, stores, shared = _loads_and_stores(inner)
        later |= loads - stores
        bound |= shared
    is_open = _TAKES_ALL in text
    for step in dis.get_instructions(code):
        if step.opname in _STORES:
            bound.add(step.argval)
        elif step.opname in _LOADS and step.argval not in bound:
            wanted.add(step.argval)
        elif step.opname == "IMPORT_STAR" or step.argrepr == "INTRINSIC_IMPORT_STAR":
            is_open = True
    return Names(
        frozenset(filter(_is_own, wanted)),
        frozenset(filter(_is_own, later)),
        frozenset(bound),
        is_open,
    )


def names_in(cell: CodeCell) -> Names:
    """The names of a cell as it stands in a notebook."""
    return names_of(transform_cell(cell, "cell").text)


def missing_names(cells: Iterable[Names]) -> set[str]:
    """The names that cells, run in this order from nothing, need and do not make."""
    missing: set[str] = set()
    later: set[str] = set()
    bound: set[str] = set()
    for names in cells:
        if names.open:  # whatever is wanted here and later may be from there
            return missing
        missing |= names.wanted - bound
        later |= names.wanted_later
        bound |= names.bound
    return missing | (later - bound)


def _loads_and_stores(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """What a function's or class's own code loads from outside, keeps to itself, and makes global."""
    loads: set[str] = set()
    stores: set[str] = set()
    shared: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in _LOADS:
            loads.add(step.argval)
        elif step.opname == "STORE_NAME":
            stores.add(step.argval)
        elif step.opname == "STORE_GLOBAL":
            shared.add(step.argval)
    return loads, stores, shared


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _is_own(name: str) -> bool:
    """Whether a name is somebody's, not Python's; dunder names are the module's."""
    dunder = name.startswith("__") and name.endswith("__")
    return not dunder and not name.startswith(".") and name not in _IN_EVERY_JOB
