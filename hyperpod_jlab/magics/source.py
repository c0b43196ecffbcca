"""The notebook that a cell is sent as: the cell itself, at its place, and the cells that are to run before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture.notebook import CodeCell, read_notebook
from hyperpod_jlab.capture.notebook import Notebook as NotebookFile
from hyperpod_jlab.capture.selection import select_cells
from hyperpod_jlab.magics.kernel import MAGIC, KernelCell
from hyperpod_jlab.magics.names import Names, missing_names, names_in
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.source import NotebookSource
from hyperpod_jlab.model.validation import parse

_NO_FILE = "cell.ipynb"
_SHOWN = 8


@dataclass(frozen=True)
class CellSource:
    """A cell made ready to be sent as part of a notebook.

    Attributes:
        source: The source's data for the spec.
        content: The notebook's JSON, with the cell's text as it was run.
        findings: What there is to say about what the cell needs.
    """

    source: dict[str, Any]
    content: dict[str, Any]
    findings: tuple[Finding, ...]


def cell_source(
    cell: KernelCell, selection: Mapping[str, Any], *, again: bool = False
) -> CellSource:
    """Put the cell where it stands in its notebook; without a file, where it stands among the kernel's inputs.

    Args:
        cell: The cell.
        selection: Which cells run before it: ``cells`` and ``tag`` as in a notebook source.
        again: Whether the same cell run once more is to be the same source: then it stands where it was first run.

    Raises:
        InvalidInputError: The cell is empty, or the selection does not fit.
    """
    if not "\n".join(cell.text.lstrip().split("\n")[1:]).strip():
        raise InvalidInputError(
            "there is nothing below %%hyperpod to run",
            code="empty_cells",
            hint="write the code below that line; commands take one %: %hyperpod logs RUN",
        )
    notebook, place = _notebook_of(cell, again=again)
    own = notebook.cells[place]
    chosen = _chosen(notebook, own, selection)
    before = [one for one in chosen if not _is_job(one)]
    numbers = [*(one.number for one in before), own.number]
    return CellSource(
        source={
            "kind": "notebook",
            "path": _as_typed(notebook.path),
            "cells": ",".join(map(str, numbers)),
        },
        content=_content(notebook, numbers),
        findings=(
            *_left_out(chosen),
            *_unknown_texts(cell, before),
            *_name_findings(cell, notebook, own, before),
        ),
    )


def _notebook_of(cell: KernelCell, *, again: bool) -> tuple[NotebookFile, int]:
    """The notebook with the cell's text in it, and the cell's place among its code cells."""
    if cell.notebook is not None:
        try:
            found = read_notebook(cell.notebook)
        except InvalidInputError:  # never saved with code in it, or being written just now
            found = NotebookFile(cell.notebook, (), frozenset())
        return _with_cell(found, cell)
    texts = [*cell.inputs[:-1], cell.text]
    if again:
        first = next(n for n, text in enumerate(texts, 1) if text.strip() == cell.text.strip())
        texts = [*texts[: first - 1], cell.text]
    cells = [CodeCell(number, text, frozenset(), None) for number, text in enumerate(texts, 1)]
    return NotebookFile(Path.cwd() / _NO_FILE, tuple(cells), frozenset()), len(cells) - 1


def _with_cell(notebook: NotebookFile, cell: KernelCell) -> tuple[NotebookFile, int]:
    cells: list[CodeCell] = list(notebook.cells)
    same_id = [n for n, one in enumerate(cells) if cell.id is not None and one.id == cell.id]
    same_text = [n for n, one in enumerate(cells) if one.text.strip() == cell.text.strip()]
    found = [*same_id, *(same_text if len(same_text) == 1 else [])]
    place = found[0] if found else len(cells)
    before = cells[place] if found else CodeCell(place + 1, "", frozenset(), None)
    cells[place : place + 1] = [replace(before, text=cell.text, id=cell.id or before.id)]
    return NotebookFile(notebook.path, tuple(cells), notebook.other_ids), place


def _chosen(
    notebook: NotebookFile, own: CodeCell, selection: Mapping[str, Any]
) -> tuple[CodeCell, ...]:
    if not selection:
        return ()
    source = parse(NotebookSource, {"kind": "notebook", "path": notebook.path.name, **selection})
    chosen = [one for one in select_cells(notebook, source) if one.number != own.number]
    below = [one.number for one in chosen if one.number > own.number]
    if below:
        raise InvalidInputError(
            f"cell {below[0]} stands below this one, which is cell {own.number}; cells run in the notebook's order",
            code="cell_below",
            hint="choose cells above it, or move this cell down",
            detail={"field": "source.cells"},
        )
    return tuple(chosen)


def _is_job(cell: CodeCell) -> bool:
    return cell.text.lstrip().startswith(MAGIC)


def _left_out(chosen: Sequence[CodeCell]) -> list[Finding]:
    """Cells that are jobs of their own: in the kernel they made nothing, so they don't go along."""
    return [
        Finding(
            level="info",
            code="job_left_out",
            message=f"cell {one.number} is a job of its own and does not go along",
            hint=None,
            field="source.cells",
        )
        for one in chosen
        if _is_job(one)
    ]


def _content(notebook: NotebookFile, numbers: Sequence[int]) -> dict[str, Any]:
    """The notebook's JSON; cells that are not sent keep their places, and nothing else."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": one.id,
            "source": one.text if one.number in numbers else "",
            "metadata": {"tags": sorted(one.tags)},
            "execution_count": None,
            "outputs": [],
        }
        for one in notebook.cells
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def _as_typed(path: Path) -> str:
    """The path as one would type it in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _unknown_texts(cell: KernelCell, before: Sequence[CodeCell]) -> list[Finding]:
    """Cells that were not run like that in this kernel: the file may be older than what is on the screen."""
    ran = {text.strip() for text in cell.inputs}
    return [
        Finding(
            level="warning",
            code="cell_not_run",
            message=f"cell {one.number} goes along as it was saved, and was not run like that in this kernel",
            hint="save the notebook if it is newer on the screen",
            field="source.cells",
        )
        for one in before
        if one.text.strip() and one.text.strip() not in ran
    ]


def _name_findings(
    cell: KernelCell, notebook: NotebookFile, own: CodeCell, before: Sequence[CodeCell]
) -> list[Finding]:
    """A warning on names that the kernel has and the job will not have."""
    missing = missing_names(names_in(one) for one in (*before, own)) & cell.names
    if not missing:
        return []
    shown = sorted(missing)
    words = ", ".join(shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "")
    needed = _cells_that_define(missing, notebook, own)
    hint = "write into the cell what makes them: a job starts with an empty namespace"
    if needed:
        numbers = sorted({*needed, *(one.number for one in before)})
        hint = f"send the cells that make them along: --cells {','.join(map(str, numbers))}"
    return [
        Finding(
            level="warning",
            code="kernel_names",
            message=f"the cell uses names of this kernel that the job does not have: {words}",
            hint=hint,
            field="source",
        )
    ]


def _cells_that_define(missing: set[str], notebook: NotebookFile, own: CodeCell) -> list[int]:
    """Numbers of the cells above that together make the names; empty when some name is made by none."""
    above: dict[int, Names] = {
        one.number: names_in(one)
        for one in notebook.cells
        if one.number < own.number and not _is_job(one)
    }
    needed: set[int] = set()
    pending = set(missing)
    while pending:
        name = pending.pop()
        makers = [number for number, names in above.items() if name in names.bound]
        if not makers:
            if name in missing:
                return []
            continue
        if makers[-1] not in needed:
            needed.add(makers[-1])
            pending |= above[makers[-1]].wanted | above[makers[-1]].wanted_later
    return sorted(needed)
