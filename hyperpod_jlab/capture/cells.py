"""Prepares a notebook for a bundle: a file for each cell, the runner, and its plan."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hyperpod_jlab.capture.captured import (
    MAIN,
    Captured,
    CodeFile,
    CommandItem,
    PreviewPart,
    runtime_files,
)
from hyperpod_jlab.capture.document import NOTEBOOK, sent_document
from hyperpod_jlab.capture.files import run_name, source_path
from hyperpod_jlab.capture.notebook import CodeCell, read_notebook, select_cells
from hyperpod_jlab.capture.parameters import inject_parameters
from hyperpod_jlab.capture.project import Project, collect_project
from hyperpod_jlab.capture.transform import Transformed, check_specials, transform_cell
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec, NotebookSource
from hyperpod_jlab.launcher.parsing import parse_with_retry

# --------------------------------------------------------------------------------------------------
# A cell's requirements for the runner, read from its Python without running it.

_LOOP_NAMES = {"create_task", "ensure_future", "get_running_loop", "nest_asyncio"}
_AWAIT = re.compile(r"(?:^|[\s=(])await(?:\s|$)|^async\s+(?:for|with)\b")


@dataclass(frozen=True)
class CellFacts:
    """A cell's requirements for the runner.

    Attributes:
        problem: Why this Python cannot compile it, with the line, or None.
        needs_loop: Whether it needs a running event loop, as in a notebook.
        imports_ipython: Whether it imports ``IPython`` or ``IPython.display``.
        draws_bars: Whether it uses ``tqdm.notebook``.
        uses_get_ipython: The line of an unguarded call of ``get_ipython()``, or None.
    """

    problem: tuple[int, str] | None = None
    needs_loop: bool = False
    imports_ipython: bool = False
    uses_get_ipython: int | None = None
    draws_bars: bool = False


def inspect_cell(text: str) -> CellFacts:
    """Inspect a cell's Python after its magics were replaced."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree_flags = flags | ast.PyCF_ONLY_AST
            tree = parse_with_retry(
                lambda: compile(text, "<cell>", "exec", tree_flags, dont_inherit=True)
            )
            code = compile(text, "<cell>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            return CellFacts((error.lineno or 1, error.msg), needs_loop=_seems_to_await(text))
        except (ValueError, RecursionError, MemoryError) as error:
            return CellFacts((1, str(error) or "it is nested too deeply"))
    awaits = bool(code.co_flags & inspect.CO_COROUTINE)
    return CellFacts(
        needs_loop=awaits or _needs_event_loop(tree),
        imports_ipython=any(_is_ipython(node) for node in ast.walk(tree)),
        draws_bars=any(_is_notebook_progress_bar(node) for node in ast.walk(tree)),
        uses_get_ipython=next(_bare_get_ipython(tree), None),
    )


def _seems_to_await(text: str) -> bool:
    """Whether a cell that this Python cannot compile awaits something outside of comments."""
    return any(_AWAIT.search(line.partition("#")[0].lstrip()) for line in text.split("\n"))


def _needs_event_loop(tree: ast.AST) -> bool:
    """Whether code outside of any coroutine uses a name that needs a running loop."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.AsyncFunctionDef):
            continue
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        if name in _LOOP_NAMES:
            return True
        pending.extend(ast.iter_child_nodes(node))
    return False


def _is_ipython(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name in {"IPython", "IPython.display"} for alias in node.names)
    return isinstance(node, ast.ImportFrom) and node.module in {"IPython", "IPython.display"}


def _is_notebook_progress_bar(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name == "tqdm.notebook" for alias in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    names = {alias.name for alias in node.names}
    return node.module == "tqdm.notebook" or (
        node.module == "tqdm" and bool(names & {"notebook", "tnrange", "tqdm_notebook"})
    )


def _bare_get_ipython(tree: ast.AST) -> Iterator[int]:
    """Lines of unguarded calls, in order; a call in a ``try`` is how notebooks check for IPython."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Try | ast.TryStar):
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "get_ipython"
        ):
            yield node.lineno
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


PLAN = "code/cells.json"
"""The runner's input: which cells to run, and how."""

_RESERVED_NAMES = {"main.py", "cells.json", "notebook.ipynb", "hyperpod_runtime", "lib"}


@dataclass(frozen=True)
class _PreparedCell:
    """One cell with all its facts."""

    cell: CodeCell
    stem: str
    transformed: Transformed
    facts: CellFacts

    @property
    def changed(self) -> bool:
        return self.transformed.text != self.cell.text


def capture_notebook(
    spec: JobSpec, source: NotebookSource, base: Path, content: Mapping[str, Any] | None
) -> Captured:
    """Capture the selected cells of a notebook.

    Raises:
        InvalidInputError: Not a notebook, or the selection does not match it.
    """
    path = source_path(base, source.path)
    notebook = read_notebook(path, content)
    folder = path.name if path.name not in _RESERVED_NAMES else f"{path.name}.ipynb"
    selection, findings = inject_parameters(notebook, select_cells(notebook, source), source)
    cells: list[_PreparedCell] = []
    specials = 0
    for cell in selection:
        if cell.text.strip():
            cells.append(_prepare(cell, f"{folder}/cell-{cell.number:02d}"))
            specials += len(cells[-1].transformed.notes)
            check_specials(specials)
    project = collect_project(spec.files, path.parent, base)
    command: tuple[CommandItem, ...] = ({"python": True}, "-u", {"bundle": MAIN}, *spec.args)
    plan = _plan(path, cells, project)
    document = sent_document(notebook, selection)
    files = [*runtime_files("notebook"), CodeFile(PLAN, plan), CodeFile(NOTEBOOK, document)]
    for prepared in cells:
        files += _cell_files(prepared)
    return Captured(
        name=run_name(spec.name, path.stem),
        files=tuple(files),
        project=project.files,
        command=command,
        findings=(*findings, *_findings(cells), *project.findings),
        parts=tuple(_part(prepared) for prepared in cells),
    )


def checksum(text: str) -> str:
    """A checksum of a cell's source that a browser can compute too: it shows whether the cell has changed since its submit."""
    return f"{zlib.crc32(text.encode()):08x}"


def _prepare(cell: CodeCell, stem: str) -> _PreparedCell:
    transformed = transform_cell(cell, stem)
    return _PreparedCell(cell, stem, transformed, inspect_cell(transformed.text))


def _cell_files(prepared: _PreparedCell) -> list[CodeFile]:
    """The cell's exact bytes and, if it had magics, the text that is compiled instead."""
    files = [CodeFile(f"code/{prepared.stem}.py", prepared.cell.text.encode())]
    if prepared.changed:
        files.append(
            CodeFile(f"code/{prepared.stem}.compiled.py", prepared.transformed.text.encode())
        )
    for suffix, text in prepared.transformed.bodies.items():
        files.append(CodeFile(f"code/{prepared.stem}{suffix}", text.encode()))
    return files


def _plan(path: Path, cells: Sequence[_PreparedCell], project: Project) -> bytes:
    folder = project.relative_to_root(path.parent) or PurePosixPath()
    document = {
        "format": 1,
        "notebook": path.name,
        "folder": str(folder),
        "event_loop": any(prepared.facts.needs_loop for prepared in cells),
        "ipython": any(prepared.facts.imports_ipython for prepared in cells),
        "text_bars": any(prepared.facts.draws_bars for prepared in cells),
        "cells": [
            {
                "number": prepared.cell.number,
                "id": prepared.cell.id,
                "checksum": checksum(prepared.cell.text),
                "file": f"{prepared.stem}.py",
                "compiled": f"{prepared.stem}.compiled.py" if prepared.changed else None,
                "rewritten": prepared.transformed.rewritten,
                "around": prepared.transformed.around,
                "quiet": prepared.transformed.quiet,
            }
            for prepared in cells
        ],
    }
    return json.dumps(document, indent=1).encode()


def _findings(cells: Sequence[_PreparedCell]) -> list[Finding]:
    findings: list[Finding] = []
    for prepared in cells:
        findings += prepared.transformed.findings
        facts = prepared.facts
        if facts.problem is not None:
            findings.append(_syntax(prepared, *facts.problem))
        if facts.uses_get_ipython is not None:
            message = "get_ipython() does not exist in a job, because a job does not run in IPython"
            findings.append(_warning(prepared, "get_ipython", facts.uses_get_ipython, message))
    return findings


def _warning(prepared: _PreparedCell, code: str, line: int, message: str) -> Finding:
    return Finding(
        level="warning",
        code=code,
        message=f"cell {prepared.cell.number}, line {line}: {message}",
        field="source",
    )


def _syntax(prepared: _PreparedCell, line: int, problem: str) -> Finding:
    """A cell that this Python cannot compile: the job's Python may be newer."""
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return Finding(
        level="warning",
        code="syntax",
        message=f"syntax error in cell {prepared.cell.number}, line {line}: {problem} ({version})",
        hint="you can still submit if the cluster runs a newer Python",
        field="source",
    )


def _part(prepared: _PreparedCell) -> PreviewPart:
    return PreviewPart(
        f"Cell {prepared.cell.number}",
        "python",
        prepared.transformed.text,
        tuple(prepared.transformed.notes),
    )
