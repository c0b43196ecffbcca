"""Parameters of a notebook, as papermill has them: a cell with their values follows the cell that is tagged ``parameters``."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from hyperpod_jlab.capture.notebook import CodeCell, Notebook
from hyperpod_jlab.core.errors import nearest
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import NotebookSource

PARAMETERS_TAG = "parameters"
INJECTED_TAG = "injected-parameters"
INJECTED_NUMBER = 0
"""The injected cell is not one of the notebook's cells, which are numbered from 1."""
_INJECTED_ID = "injected-parameters"
_FIELD = "source.parameters"
_MAX_COMPARED = 200  # names; comparing them is slow


def inject_parameters(
    notebook: Notebook, cells: Sequence[CodeCell], source: NotebookSource
) -> tuple[tuple[CodeCell, ...], tuple[Finding, ...]]:
    """The cells with the one that sets the parameters, and warnings about names that the notebook does not know.

    A cell that an earlier run has injected is replaced.
    """
    if not source.parameters:
        return tuple(cells), ()
    cells = [cell for cell in cells if INJECTED_TAG not in cell.tags]
    tagged = [cell for cell in notebook.cells if PARAMETERS_TAG in cell.tags]
    lines = [f"{name} = {value!r}" for name, value in source.parameters.items()]
    injected = CodeCell(INJECTED_NUMBER, "\n".join(["# Parameters", *lines]), frozenset({INJECTED_TAG}), _INJECTED_ID)
    last = tagged[-1].number if tagged else 0
    position = sum(cell.number <= last for cell in cells)
    findings = tuple(_warnings(tagged, {cell.number for cell in cells}, source))
    return (*cells[:position], injected, *cells[position:]), findings


def _warnings(tagged: Sequence[CodeCell], selected: Container[int], source: NotebookSource) -> Iterator[Finding]:
    if not tagged:
        message = "no cell is tagged 'parameters', so the parameters are set before the first cell"
        hint = "tag the cell with the default values: Property Inspector, Cell tags"
        yield _warning("no_parameters_cell", message, hint)
        return
    left_out = [str(cell.number) for cell in tagged if cell.number not in selected]
    if left_out:
        numbers = ", ".join(left_out)
        yield _warning(
            "parameters_cell_left_out",
            f"the cell tagged 'parameters' (cell {numbers}) is not selected, so its other values are not set",
            f"select it too, such as with --cells {numbers},{source.cells}" if source.cells else "select it too",
        )
    known = {name for cell in tagged for name in _assigned_names(cell.text)}
    for name in source.parameters:
        if known and name not in known:
            suggestion = nearest(name, sorted(known)[:_MAX_COMPARED])
            yield _warning(
                "unknown_parameter",
                f"the cell tagged 'parameters' has no variable {name}",
                f"did you mean {suggestion}?" if suggestion else None,
            )


def _warning(code: str, message: str, hint: str | None) -> Finding:
    return Finding(level="warning", code=code, message=message, hint=hint, field=_FIELD)


def _assigned_names(text: str) -> Iterator[str]:
    """Names that a cell assigns; none if it is not plain Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
