"""Which of a notebook's code cells run: by number, by tag, by id. Several ways together narrow each other."""

from __future__ import annotations

from hyperpod_jlab.capture.notebook import CodeCell, Notebook
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.ranges import parse_ranges
from hyperpod_jlab.model.source import NotebookSource


def select_cells(notebook: Notebook, source: NotebookSource) -> tuple[CodeCell, ...]:
    """The code cells to run, in the notebook's order.

    Raises:
        InvalidInputError: A number, tag or id that the notebook does not have, or nothing left to run.
    """
    chosen = set(range(1, len(notebook.cells) + 1))
    if source.cells is not None:
        chosen &= _by_number(notebook, source.cells)
    if source.tag is not None:
        chosen &= _by_tag(notebook, source.tag)
    if source.cell_ids is not None:
        chosen &= _by_id(notebook, source.cell_ids)
    cells = tuple(cell for cell in notebook.cells if cell.number in chosen)
    if not cells:
        raise _refusal("no code cell is in all of the selections", "no_cells", "source")
    if not any(cell.text.strip() for cell in cells):
        what = "the selected cells are" if len(cells) > 1 else f"cell {cells[0].number} is"
        raise _refusal(f"{what} empty", "empty_cells", "source.path")
    return cells


def _by_number(notebook: Notebook, text: str) -> set[int]:
    count = len(notebook.cells)
    numbers = parse_ranges(text)
    beyond = [number for number in numbers if number > count]
    if not beyond:
        return set(numbers)
    cells = "1 code cell" if count == 1 else f"{count} code cells"
    raise _refusal(
        f"{notebook.path.name} has {cells}; there is no cell {beyond[0]}",
        "no_such_cell",
        "source.cells",
        hint="code cells are counted from 1; markdown cells do not count",
        cells=count,
    )


def _by_tag(notebook: Notebook, tag: str) -> set[int]:
    found = {cell.number for cell in notebook.cells if tag in cell.tags}
    if found:
        return found
    tags = sorted({tag for cell in notebook.cells for tag in cell.tags})
    hint = f"tags in it: {', '.join(tags)}" if tags else "no code cell in it has a tag"
    raise _refusal(
        f"no code cell of {notebook.path.name} has the tag '{tag}'",
        "no_such_tag",
        "source.tag",
        hint=hint,
    )


def _by_id(notebook: Notebook, ids: list[str]) -> set[int]:
    field = "source.cell_ids"
    if not ids:
        raise _refusal("no cell is selected", "no_cells", field)
    known = {cell.id for cell in notebook.cells if cell.id is not None}
    if not known and not notebook.other_ids:
        raise _refusal(
            f"the cells of {notebook.path.name} have no ids",
            "no_cell_ids",
            field,
            hint="save the notebook once with a current JupyterLab, or choose cells by number",
        )
    unknown = [identity for identity in ids if identity not in known | notebook.other_ids]
    if unknown:
        raise _refusal(
            f"{notebook.path.name} has no cell with the id '{unknown[0]}'",
            "no_such_cell",
            field,
            hint="save the notebook, then select the cells again",
        )
    found = {cell.number for cell in notebook.cells if cell.id in ids}
    if not found:
        raise _refusal(
            "only markdown or raw cells are selected",
            "no_code_cells",
            field,
            hint="select at least one code cell",
        )
    return found


def _refusal(
    message: str, code: str, field: str, *, hint: str | None = None, **detail: int
) -> InvalidInputError:
    return InvalidInputError(message, code=code, hint=hint, detail={"field": field, **detail})
