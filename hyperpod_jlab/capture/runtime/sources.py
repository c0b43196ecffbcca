"""Source lines for whoever asks: tracebacks, ``inspect.getsource``, and compilers such as torch's that build on it.

Functions know their file. Classes do not: `inspect` looks for them in the file of their module, which is the runner's ``main.py``,
and before Python 3.13 it then searches that file's text. Here both are answered for classes that a cell defined.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from typing import Any, Callable, Iterator


def remember(path: str, text: str) -> None:
    """Keep a file's lines for tracebacks, whatever becomes of the file."""
    lines = [line + "\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    linecache.cache[path] = (len(text), None, lines, path)  # no time of change: it never goes stale


class ClassIndex:
    """Where the classes of ``__main__`` were defined."""

    def __init__(self) -> None:
        self._trees: list[tuple[str, ast.Module]] = []
        self._lines_by_class: dict[str, list[tuple[str, int]]] = {}

    def add(self, path: str, tree: ast.Module) -> None:
        """Take note of a file's syntax tree. It is searched only when somebody asks."""
        self._trees.append((path, tree))

    def find(self, kind: type) -> tuple[str, int] | None:
        """File and first line of a class, decorators included; None when no cell defined it."""
        while self._trees:
            path, tree = self._trees.pop(0)
            for name, line in _classes(tree, ""):
                self._lines_by_class.setdefault(name, []).append((path, line))
        locations = self._lines_by_class.get(kind.__qualname__, [])
        if len(locations) < 2:
            return locations[0] if locations else None
        # Defined more than once: its methods know which one it is.
        files = {
            part.__code__.co_filename for part in vars(kind).values() if inspect.isfunction(part)
        }
        first = vars(kind).get("__firstlineno__")
        matching = [location for location in locations if location[0] in files] or locations
        exact = [location for location in matching if location[1] == first]
        return (exact or matching)[-1]


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = prefix + child.name
            yield (
                name,
                min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)]),
            )
            yield from _classes(child, name + ".")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _classes(child, prefix + child.name + ".<locals>.")
        else:
            yield from _classes(child, prefix)


def help_inspect(index: ClassIndex) -> None:
    """Let `inspect` find the classes that cells defined."""
    setattr(inspect, "getfile", _getfile(inspect.getfile, index))  # noqa: B010 - to mypy it is a constant
    setattr(inspect, "findsource", _findsource(inspect.findsource, index))  # noqa: B010


def _find_location(value: Any, index: ClassIndex) -> tuple[str, int] | None:
    if not isinstance(value, type):
        return None
    if getattr(value, "__module__", None) not in ("__main__", "__mp_main__"):
        return None
    return index.find(value)


def _getfile(original: Callable[[Any], str], index: ClassIndex) -> Callable[[Any], str]:
    def getfile(object: Any) -> str:  # noqa: A002 - the name that callers may use
        location = _find_location(object, index)
        return location[0] if location is not None else original(object)

    getfile.__doc__ = original.__doc__
    return getfile


def _findsource(
    original: Callable[[Any], tuple[list[str], int]], index: ClassIndex
) -> Callable[[Any], tuple[list[str], int]]:
    def findsource(object: Any) -> tuple[list[str], int]:  # noqa: A002 - as above
        location = _find_location(object, index)
        lines = linecache.getlines(location[0]) if location is not None else []
        if location is None or not lines:
            return original(object)
        return lines, location[1] - 1

    findsource.__doc__ = original.__doc__
    return findsource
