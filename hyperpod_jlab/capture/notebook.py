"""Reads a notebook: its code cells with their numbers, tags and ids, or an error."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.quantities import parse_ranges
from hyperpod_jlab.core.spec import NotebookSource
from hyperpod_jlab.storage import descent

_PATH_FIELD = "source.path"
_NBFORMAT = 4
MAX_SOURCE = 8 << 20
"""Bytes of a script, or of a file for the scheduler."""
MAX_NOTEBOOK = 64 << 20
"""Bytes of a notebook with its outputs."""
MAX_CELLS = 10_000
MAX_CODE = 4 << 20
"""Characters of all code cells."""
_MAX_TAGS_SHOWN = 20
_SAVE_HINT = "open it in JupyterLab and save it to update its format"


@dataclass(frozen=True)
class CodeCell:
    """One code cell.

    Attributes:
        number: Position among the notebook's code cells, from 1.
        text: The cell's source, exactly.
        tags: Its tags.
        id: Its id, or None before nbformat 4.5.
    """

    number: int
    text: str
    tags: frozenset[str]
    id: str | None


@dataclass(frozen=True)
class Notebook:
    """The code cells of a notebook, the ids of its other cells, and its JSON."""

    path: Path
    cells: tuple[CodeCell, ...]
    other_ids: frozenset[str]
    document: Mapping[str, Any] = field(default_factory=dict)


def read_notebook(path: Path, content: Mapping[str, Any] | None = None) -> Notebook:
    """Read a notebook.

    Args:
        path: Its file.
        content: The notebook's JSON from the caller; None to read the file.

    Raises:
        InvalidInputError: The file does not exist, or is not a notebook with Python code.
    """
    document = _load(path) if content is None else content
    _check_format(document, path)
    _check_language(document, path)
    code: list[CodeCell] = []
    skipped_ids: set[str] = set()
    for position, cell in enumerate(document["cells"], 1):
        if not isinstance(cell, Mapping) or "cell_type" not in cell:
            raise _notebook_error(path, f"its cell at position {position} is invalid")
        identity = cell.get("id") if isinstance(cell.get("id"), str) else None
        if cell["cell_type"] != "code":
            skipped_ids |= {identity} if identity is not None else set()
            continue
        code.append(_code_cell(cell, len(code) + 1, identity, path))
    _check_size(code, path)
    if not code:
        raise InvalidInputError(f"{path.name} has no code cells", code="no_cells", detail={"field": _PATH_FIELD})
    return Notebook(path, tuple(code), frozenset(skipped_ids), document)


def read_kernel_name(path: Path, content: Mapping[str, Any] | None = None) -> str | None:
    """The name of a notebook's kernel; None if it has none.

    Raises:
        InvalidInputError: The file does not exist, or is not JSON.
    """
    document: Any = _load(path) if content is None else content
    try:
        name = document["metadata"]["kernelspec"]["name"]
    except (KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def _check_size(cells: Sequence[CodeCell], path: Path) -> None:
    """Reject what takes minutes to compile, and gigabytes."""
    if len(cells) > MAX_CELLS:
        reason = f"more than {MAX_CELLS} code cells"
    elif sum(len(cell.text) for cell in cells) > MAX_CODE:
        reason = f"more than {MAX_CODE >> 20} MiB of code, without its outputs"
    else:
        return
    raise InvalidInputError(
        f"{path.name} has {reason}",
        code="too_large",
        hint="move data from cells to files, and code to modules",
        detail={"field": _PATH_FIELD},
    )


def read_file(path: Path, subject: str, max_bytes: int = MAX_SOURCE) -> bytes:
    """The bytes of a source file.

    Raises:
        InvalidInputError: The file does not exist, is unreadable, or is larger than `max_bytes`.
    """
    hint = None
    try:
        return descent.read_named(path, max_bytes)
    except FileNotFoundError:
        reason, code = f"{subject} {path} not found", "no_such_file"
    except IsADirectoryError:
        reason, code = f"{path} is a folder, not a {subject}", "not_a_file"
    except OSError as error:
        reason, code = f"{path} cannot be read: {error.strerror}", "unreadable_file"
        if error.errno == errno.EFBIG:
            reason, code = f"the {subject} {path} is larger than {max_bytes >> 20} MiB", "too_large"
            hint = "clear its outputs" if max_bytes == MAX_NOTEBOOK else "move data to other files"
    except ValueError:  # for example a NUL in the path
        reason, code = f"{str(path)[:200]!r} is not a valid file name", "no_such_file"
    raise InvalidInputError(reason, code=code, hint=hint, detail={"field": _PATH_FIELD})


def _load(path: Path) -> Mapping[str, Any]:
    data = read_file(path, "notebook", MAX_NOTEBOOK)
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _notebook_error(path, f"it is not UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        location = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise _notebook_error(path, f"it is not JSON{location}") from error
    if not isinstance(document, Mapping):
        raise _notebook_error(path, "its JSON is not an object")
    return document


def _check_format(document: Mapping[str, Any], path: Path) -> None:
    major = document.get("nbformat")
    if major is None and "cells" not in document and "worksheets" not in document:
        raise _notebook_error(path, "it has no cells")
    if not isinstance(major, int) or isinstance(major, bool):
        raise _notebook_error(path, "its nbformat is missing")
    if major < _NBFORMAT:
        raise InvalidInputError(
            f"{path.name} is in the old notebook format {major}",
            code="notebook_format",
            hint=_SAVE_HINT,
            detail={"field": _PATH_FIELD, "nbformat": major},
        )
    if major > _NBFORMAT:
        raise InvalidInputError(
            f"{path.name} is in notebook format {major}, which is newer than {_NBFORMAT}",
            code="notebook_format",
            hint="save it in nbformat 4, or update hyperpod_jlab",
            detail={"field": _PATH_FIELD, "nbformat": major},
        )
    if not isinstance(document.get("cells"), list):
        raise _notebook_error(path, "it has no cells")


def _check_language(document: Mapping[str, Any], path: Path) -> None:
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    for part, key in (("kernelspec", "language"), ("language_info", "name")):
        value = metadata.get(part)
        language = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(language, str) and language and not language.lower().startswith(("python", "ipython")):
            raise InvalidInputError(
                f"{path.name} is a notebook for {language}, and jobs run Python",
                code="not_python",
                hint="run it with a command: -c '...'",
                detail={"field": _PATH_FIELD, "language": language},
            )


def _code_cell(cell: Mapping[str, Any], number: int, identity: str | None, path: Path) -> CodeCell:
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _notebook_error(path, f"code cell {number} has no text")
    _check_characters(source, number, path)
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    tag_list = tags if isinstance(tags, list) else []
    return CodeCell(number, source, frozenset(tag for tag in tag_list if isinstance(tag, str)), identity)


def _check_characters(source: str, number: int, path: Path) -> None:
    """Reject what no file can contain, half of a surrogate pair, and what Python cannot compile, a NUL; JSON allows both."""
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        raise InvalidInputError(
            f"cell {number} of {path.name} has a NUL character in line {line}, which Python does not allow",
            code="nul_character",
            hint="delete that character, or write it as \\0 in a string",
            detail={"field": _PATH_FIELD, "cell": number, "line": line},
        )
    try:
        source.encode("utf-8")
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        character = f"U+{ord(source[error.start]):04X}"
        raise InvalidInputError(
            f"cell {number} of {path.name} has an invalid character ({character}, a lone surrogate) in line {line}",
            code="lone_surrogate",
            hint="delete that character and type it again, or write it as an escape in a string",
            detail={"field": _PATH_FIELD, "cell": number, "line": line},
        ) from error


def _notebook_error(path: Path, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path.name} is not a notebook: {reason}", code="not_a_notebook", detail={"field": _PATH_FIELD}
    )


# --------------------------------------------------------------------------------------------------
# The selection of a notebook's code cells: by number, tag and id. Several criteria must all match.


def select_cells(notebook: Notebook, source: NotebookSource) -> tuple[CodeCell, ...]:
    """The code cells to run, in the notebook's order.

    Raises:
        InvalidInputError: The notebook does not have a number, tag or id, or the selection is
            empty.
    """
    chosen = set(range(1, len(notebook.cells) + 1))
    if source.cells is not None:
        chosen &= _select_by_number(notebook, source.cells)
    if source.tag is not None:
        chosen &= _select_by_tag(notebook, source.tag)
    if source.cell_ids is not None:
        chosen &= _select_by_id(notebook, source.cell_ids)
    cells = tuple(cell for cell in notebook.cells if cell.number in chosen)
    if not cells:
        raise _selection_error("no code cell matches all selections", "no_cells", "source")
    if not any(cell.text.strip() for cell in cells):
        subject = "the selected cells are" if len(cells) > 1 else f"cell {cells[0].number} is"
        raise _selection_error(f"{subject} empty", "empty_cells", "source.path")
    return cells


def _select_by_number(notebook: Notebook, text: str) -> set[int]:
    count = len(notebook.cells)
    numbers = parse_ranges(text)
    beyond = [number for number in numbers if number > count]
    if not beyond:
        return set(numbers)
    cells = "1 code cell" if count == 1 else f"{count} code cells"
    raise _selection_error(
        f"{notebook.path.name} has {cells}, but no cell {beyond[0]}",
        "no_such_cell",
        "source.cells",
        hint="code cells are numbered from 1; markdown cells are not counted",
        cells=count,
    )


def _select_by_tag(notebook: Notebook, tag: str) -> set[int]:
    numbers = {cell.number for cell in notebook.cells if tag in cell.tags}
    if numbers:
        return numbers
    tags = sorted({tag for cell in notebook.cells for tag in cell.tags})
    shown = ", ".join(tag[:80] for tag in tags[:_MAX_TAGS_SHOWN])
    hint = f"tags in it: {shown}" if tags else "no code cell in it has a tag"
    raise _selection_error(
        f"no code cell of {notebook.path.name} has the tag '{tag}'", "no_such_tag", "source.tag", hint=hint
    )


def _select_by_id(notebook: Notebook, ids: list[str]) -> set[int]:
    field = "source.cell_ids"
    if not ids:
        raise _selection_error("no cell is selected", "no_cells", field)
    known_ids = {cell.id for cell in notebook.cells if cell.id is not None}
    if not known_ids and not notebook.other_ids:
        raise _selection_error(
            f"the cells of {notebook.path.name} have no ids",
            "no_cell_ids",
            field,
            hint="save the notebook once with a current JupyterLab, or choose cells by number",
        )
    all_ids = known_ids | notebook.other_ids
    unknown_ids = [identity for identity in ids if identity not in all_ids]
    if unknown_ids:
        raise _selection_error(
            f"{notebook.path.name} has no cell with the id '{unknown_ids[0]}'",
            "no_such_cell",
            field,
            hint="save the notebook, then select the cells again",
        )
    chosen = set(ids)
    numbers = {cell.number for cell in notebook.cells if cell.id in chosen}
    if not numbers:
        raise _selection_error(
            "only markdown or raw cells are selected", "no_code_cells", field, hint="select at least one code cell"
        )
    return numbers


def _selection_error(
    message: str, code: str, field: str, *, hint: str | None = None, **detail: int
) -> InvalidInputError:
    return InvalidInputError(message, code=code, hint=hint, detail={"field": field, **detail})
