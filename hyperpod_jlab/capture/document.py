"""The notebook that goes with a run: what was sent, without outputs. Outputs are put into it when it is read (`features.notebook`)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.capture.notebook import CodeCell, Notebook
from hyperpod_jlab.capture.parameters import INJECTED_TAG

NOTEBOOK = "code/notebook.ipynb"
_MAX_ATTACHMENTS = 4 << 20
"""Bytes of the pictures in Markdown cells. More are left out."""
_MAX_TEXT = 16 << 20
"""Characters of all cells. Markdown is left out of more."""
_FIRST_MINOR_WITH_IDS = 5
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def sent_document(notebook: Notebook, cells: Sequence[CodeCell]) -> bytes:
    """The notebook as JSON: the cells that run, and the Markdown between them if the whole notebook runs.

    The metadata of a code cell has its number: ``{"hyperpod": {"cell": 3}}``.
    """
    document = notebook.document
    has_ids = int(document.get("nbformat_minor") or 0) >= _FIRST_MINOR_WITH_IDS
    values = [value for value in document["cells"] if value["cell_type"] == "code"]
    originals = dict(zip((cell.number for cell in notebook.cells), values, strict=True))
    entries = [_code_cell(cell, originals.get(cell.number), has_ids) for cell in cells]
    if _is_whole(notebook, cells):
        entries = _with_other_cells(document["cells"], entries, cells, originals)
    metadata = _metadata(document, {"kernelspec", "language_info", "title", "authors"})
    metadata["kernelspec"] = _kernel(metadata.get("kernelspec"))
    if has_ids:
        _make_ids_unique(entries)
    result = {
        "nbformat": document["nbformat"],
        "nbformat_minor": document.get("nbformat_minor") or 0,
        "metadata": metadata,
        "cells": entries,
    }
    if len(json.dumps([cell.get("attachments") for cell in entries])) > _MAX_ATTACHMENTS:
        for cell in entries:
            cell.pop("attachments", None)
    if sum(len(cell["source"]) for cell in entries) > _MAX_TEXT:
        result["cells"] = [cell for cell in entries if cell["cell_type"] == "code"]
    # Half of a character, which JSON allows in Markdown, has no UTF-8.
    return json.dumps(result, indent=1, ensure_ascii=False).encode("utf-8", "replace")


def _is_whole(notebook: Notebook, cells: Sequence[CodeCell]) -> bool:
    """Whether all code cells run, but for one that an earlier run has injected."""
    numbers = {cell.number for cell in cells}
    return all(cell.number in numbers or INJECTED_TAG in cell.tags for cell in notebook.cells)


def _with_other_cells(
    values: Sequence[Mapping[str, Any]],
    entries: Sequence[dict[str, Any]],
    cells: Sequence[CodeCell],
    originals: Mapping[int, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The code cells, and the other cells at their places before them."""
    result: list[dict[str, Any]] = []
    rest = iter(values)
    for cell, entry in zip(cells, entries, strict=True):
        original = originals.get(cell.number)
        while original is not None and (value := next(rest)) is not original:
            result += _other_cell(value)
        result.append(entry)
    for value in rest:
        result += _other_cell(value)
    return result


def _code_cell(cell: CodeCell, original: Mapping[str, Any] | None, has_ids: bool) -> dict[str, Any]:
    metadata = _metadata(original or {}, {"tags", "name", "jupyter", "collapsed", "scrolled"})
    if original is None:
        metadata["tags"] = sorted(cell.tags)
    metadata["hyperpod"] = {"cell": cell.number}
    result: dict[str, Any] = {"cell_type": "code"}
    if has_ids:
        result["id"] = cell.id or f"cell-{cell.number}"
    result.update(metadata=metadata, execution_count=None, outputs=[], source=cell.text)
    return result


def _kernel(value: object) -> dict[str, Any]:
    """The notebook's kernel, as nbformat takes it. Without one, JupyterLab asks for a kernel when the notebook is opened."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        shown = value.get("display_name")
        return {**value, "display_name": shown if isinstance(shown, str) else value["name"]}
    return _KERNEL


def _make_ids_unique(entries: Sequence[dict[str, Any]]) -> None:
    """Replace the ids of cells that nbformat refuses: editors write them all the same."""
    seen = set[str]()
    for position, entry in enumerate(entries, 1):
        cell_id = entry.get("id")
        if not isinstance(cell_id, str) or not _ID.fullmatch(cell_id) or cell_id in seen:
            cell_id = next(
                name for name in (f"cell-{position}{'-' * extra}" for extra in itertools.count()) if name not in seen
            )
            entry["id"] = cell_id
        seen.add(cell_id)


def _other_cell(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A Markdown or raw cell; nothing for a code cell and for a type that nbformat does not know."""
    if value["cell_type"] not in ("markdown", "raw"):
        return []
    kept = {name: value[name] for name in ("cell_type", "id", "attachments") if name in value}
    source = value.get("source")
    kept["source"] = source if isinstance(source, (str, list)) else ""
    return [{**kept, "metadata": _metadata(value, {"tags", "name", "format", "jupyter"})}]


def _metadata(owner: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Some of a cell's or notebook's metadata: never the mark of trust, nor the state of widgets."""
    metadata = owner.get("metadata")
    if not isinstance(metadata, Mapping):
        return {}
    return {name: metadata[name] for name in sorted(names) if name in metadata}
