"""Prepares a notebook for a bundle: a file for each cell, the runner, and its plan."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hyperpod_jlab.capture.captured import MAIN, Captured, CodeFile, CommandItem, PreviewPart, runtime_files
from hyperpod_jlab.capture.document import NOTEBOOK, sent_document
from hyperpod_jlab.capture.files import run_name, source_path
from hyperpod_jlab.capture.magic_lines import CellFacts, inspect_cell
from hyperpod_jlab.capture.notebook import CodeCell, read_notebook, select_cells
from hyperpod_jlab.capture.parameters import inject_parameters
from hyperpod_jlab.capture.project import Project, collect_project
from hyperpod_jlab.capture.secrets import secret_finding
from hyperpod_jlab.capture.travelling_ipython import ipython_file
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import JobSpec, NotebookSource

PLAN = "code/cells.json"
"""The runner's input: which cells to run, and how."""

_RESERVED_NAMES = {"main.py", "cells.json", "notebook.ipynb", "hyperpod_runtime", "lib"}


@dataclass(frozen=True)
class _PreparedCell:
    """One cell, its file, and what is known of it before it runs."""

    cell: CodeCell
    file: str
    facts: CellFacts


def capture_notebook(spec: JobSpec, source: NotebookSource, base: Path, content: Mapping[str, Any] | None) -> Captured:
    """Capture the selected cells of a notebook.

    Raises:
        InvalidInputError: Not a notebook, or the selection does not match it.
    """
    path = source_path(base, source.path)
    notebook = read_notebook(path, content)
    folder = path.name if path.name not in _RESERVED_NAMES else f"{path.name}.ipynb"
    selection, findings = inject_parameters(notebook, select_cells(notebook, source), source)
    cells = [
        _PreparedCell(cell, f"{folder}/cell-{cell.number:02d}.py", inspect_cell(cell.text))
        for cell in selection
        if cell.text.strip()
    ]
    project = collect_project(spec.files, path.parent, base)
    command: tuple[CommandItem, ...] = ({"python": True}, "-u", {"bundle": MAIN}, *spec.args)
    plan = _plan(path, cells, project)
    document = sent_document(notebook, selection)
    files = [*runtime_files("notebook"), ipython_file()]
    files += [CodeFile(PLAN, plan), CodeFile(NOTEBOOK, document)]
    files += [CodeFile(f"code/{one.file}", one.cell.text.encode()) for one in cells]
    return Captured(
        name=run_name(spec.name, path.stem),
        files=tuple(files),
        project=project.files,
        command=command,
        findings=(*findings, *_findings(cells), *project.findings),
        parts=tuple(PreviewPart(f"Cell {one.cell.number}", "python", one.cell.text) for one in cells),
        pip_lines=tuple(line for one in cells for line in one.facts.pip_lines),
    )


def checksum(text: str) -> str:
    """A checksum of a cell's source that a browser can compute too: it shows whether the cell has changed since its submit."""
    return f"{zlib.crc32(text.encode()):08x}"


def _plan(path: Path, cells: Sequence[_PreparedCell], project: Project) -> bytes:
    folder = project.relative_to_root(path.parent) or PurePosixPath()
    document = {
        "format": 1,
        "notebook": path.name,
        "folder": str(folder),
        "cells": [
            {
                "number": prepared.cell.number,
                "id": prepared.cell.id,
                "checksum": checksum(prepared.cell.text),
                "file": prepared.file,
            }
            for prepared in cells
        ],
    }
    return json.dumps(document, indent=1).encode()


def _findings(cells: Sequence[_PreparedCell]) -> list[Finding]:
    findings: list[Finding] = []
    for prepared in cells:
        number = prepared.cell.number
        for line, name in prepared.facts.secrets:
            findings.append(secret_finding(name, f"cell {number}, line {line}: "))
        if prepared.facts.problem is not None:
            findings.append(_syntax(prepared, *prepared.facts.problem))
    return findings


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
