"""A notebook made ready for a bundle: a file for each cell, the runner, and its plan."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hyperpod_jlab.capture.captured import Captured, CodeFile, CommandItem, Part
from hyperpod_jlab.capture.inspection import Facts, inspect_cell
from hyperpod_jlab.capture.name import run_name
from hyperpod_jlab.capture.notebook import CodeCell, read_notebook
from hyperpod_jlab.capture.project import Project, collect_project
from hyperpod_jlab.capture.runtime_files import MAIN, runtime_files
from hyperpod_jlab.capture.selection import select_cells
from hyperpod_jlab.capture.source_path import source_path
from hyperpod_jlab.capture.transform import Transformed, transform_cell
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.source import NotebookSource
from hyperpod_jlab.model.spec import JobSpec

PLAN = "code/cells.json"
"""What the runner reads: which cells, and how."""

_OURS = {"main.py", "cells.json", "hyperpod_runtime", "lib"}


@dataclass(frozen=True)
class _Ready:
    """One cell with all that is known of it."""

    cell: CodeCell
    stem: str
    done: Transformed
    facts: Facts

    @property
    def changed(self) -> bool:
        return self.done.text != self.cell.text


def capture_notebook(
    spec: JobSpec, source: NotebookSource, base: Path, content: Mapping[str, Any] | None
) -> Captured:
    """Capture the selected cells of a notebook.

    Raises:
        InvalidInputError: It is no notebook, or the selection does not fit it.
    """
    path = source_path(base, source.path)
    notebook = read_notebook(path, content)
    folder = path.name if path.name not in _OURS else f"{path.name}.ipynb"
    cells = [
        _ready(cell, f"{folder}/cell-{cell.number:02d}")
        for cell in select_cells(notebook, source)
        if cell.text.strip()
    ]
    project = collect_project(spec.files, path.parent, base)
    command: tuple[CommandItem, ...] = ({"python": True}, "-u", {"bundle": MAIN}, *spec.args)
    plan = _plan(path, cells, project)
    files = [*runtime_files("notebook"), CodeFile(PLAN, plan)]
    for ready in cells:
        files += _cell_files(ready)
    return Captured(
        name=run_name(spec.name, path.stem),
        files=tuple(files),
        project=project.files,
        command=command,
        findings=(*_findings(cells), *project.findings),
        parts=tuple(_part(ready) for ready in cells),
    )


def checksum(text: str) -> str:
    """A cell's source in short, as a browser can work it out too: whether the cell has changed since it was sent."""
    return f"{zlib.crc32(text.encode()):08x}"


def _ready(cell: CodeCell, stem: str) -> _Ready:
    done = transform_cell(cell, stem)
    return _Ready(cell, stem, done, inspect_cell(done.text))


def _cell_files(ready: _Ready) -> list[CodeFile]:
    """The cell's exact bytes, and beside them what is compiled in its place when it had magics."""
    files = [CodeFile(f"code/{ready.stem}.py", ready.cell.text.encode())]
    if ready.changed:
        files.append(CodeFile(f"code/{ready.stem}.compiled.py", ready.done.text.encode()))
    for suffix, text in ready.done.bodies.items():
        files.append(CodeFile(f"code/{ready.stem}{suffix}", text.encode()))
    return files


def _plan(path: Path, cells: Sequence[_Ready], project: Project) -> bytes:
    folder = project.place_of(path.parent) or PurePosixPath()
    document = {
        "format": 1,
        "notebook": path.name,
        "folder": str(folder),
        "event_loop": any(ready.facts.needs_loop for ready in cells),
        "ipython": any(ready.facts.imports_ipython for ready in cells),
        "text_bars": any(ready.facts.draws_bars for ready in cells),
        "cells": [
            {
                "number": ready.cell.number,
                "id": ready.cell.id,
                "checksum": checksum(ready.cell.text),
                "file": f"{ready.stem}.py",
                "compiled": f"{ready.stem}.compiled.py" if ready.changed else None,
                "rewritten": ready.done.rewritten,
                "around": ready.done.around,
                "quiet": ready.done.quiet,
            }
            for ready in cells
        ],
    }
    return json.dumps(document, indent=1).encode()


def _findings(cells: Sequence[_Ready]) -> list[Finding]:
    found: list[Finding] = []
    for ready in cells:
        found += ready.done.findings
        facts = ready.facts
        if facts.problem is not None:
            line, words = facts.problem
            found.append(_warning(ready, "syntax", line, f"this Python can't compile it: {words}"))
        if facts.uses_get_ipython is not None:
            message = "get_ipython() is not there in a job, which is no IPython"
            found.append(_warning(ready, "get_ipython", facts.uses_get_ipython, message))
    return found


def _warning(ready: _Ready, code: str, line: int, message: str) -> Finding:
    return Finding(
        level="warning",
        code=code,
        message=f"cell {ready.cell.number}, line {line}: {message}",
        hint="if the job's Python knows better, send it as it is" if code == "syntax" else None,
        field="source",
    )


def _part(ready: _Ready) -> Part:
    return Part(f"Cell {ready.cell.number}", "python", ready.done.text, tuple(ready.done.notes))
