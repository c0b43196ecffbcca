"""Compiling cells: each under its own file's name, future flags carried from cell to cell as an interactive session does."""

from __future__ import annotations
import __future__

import ast
import os
import types
from typing import Any

from . import records

_FEATURES = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]


class Cell:
    """One cell of the plan."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.number: int = entry["number"]
        self.path = os.path.join(records.CODE, *entry["file"].split("/"))
        self.rewritten = frozenset(entry["rewritten"])
        self.around: list[dict[str, Any]] = entry["around"]
        self.quiet: bool = entry["quiet"]
        compiled = entry["compiled"]
        self._compiled = os.path.join(records.CODE, *compiled.split("/")) if compiled else self.path

    def source(self) -> str:
        """The cell's own text."""
        return _read(self.path)

    def text(self) -> str:
        """The Python that is compiled: the cell's own text, or that with its magics replaced."""
        return _read(self._compiled)


def _read(path: str) -> str:
    # newline="" keeps what stands inside strings as it is; the compiler knows every kind of line break.
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


class Compiler:
    """Compiles cells in their order."""

    def __init__(self) -> None:
        self._flags = 0

    def parse(self, cell: Cell) -> ast.Module:
        """The cell's syntax tree."""
        flags = self._flags | ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree: ast.Module = compile(cell.text(), cell.path, "exec", flags, dont_inherit=True)
        if cell.rewritten:
            _forget_columns(tree, cell)
        return tree

    def compile(
        self, tree: ast.Module | ast.Expression, cell: Cell, mode: str = "exec"
    ) -> types.CodeType:
        """Code of a syntax tree; its ``from __future__`` lines hold for all that is compiled later."""
        flags = self._flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: types.CodeType = compile(tree, cell.path, mode, flags, dont_inherit=True)
        for feature in _FEATURES:
            self._flags |= code.co_flags & feature
        return code

    def steps(
        self, cell: Cell, tree: ast.Module
    ) -> tuple[types.CodeType | None, types.CodeType | None]:
        """The codes that make up a cell: its statements, and its last expression when its value is to be shown (or None)."""
        body = tree.body
        value: ast.Expression | None = None
        last = body[-1] if body else None
        if isinstance(last, ast.Expr) and not cell.quiet:
            body, value = body[:-1], ast.Expression(last.value)
        statements = self.compile(module(body), cell) if body else None
        return statements, self.compile(value, cell, "eval") if value is not None else None


def module(body: list[ast.stmt]) -> ast.Module:
    """A syntax tree of some statements."""
    return ast.Module(body=body, type_ignores=[])


def _forget_columns(tree: ast.Module, cell: Cell) -> None:
    """On lines that were rewritten columns mean nothing to the reader: mark whole lines, which tracebacks leave unmarked."""
    lines = cell.source().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, (ast.stmt, ast.expr)):
            continue
        if node.lineno in cell.rewritten or node.end_lineno in cell.rewritten:
            line = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
            node.col_offset = len(line) - len(line.lstrip())
            node.end_col_offset = len(line.rstrip().encode("utf-8"))
            node.end_lineno = node.lineno
