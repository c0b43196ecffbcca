"""Requests about a notebook's cells: which runs they went with, and what of them was sent."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from hyperpod_jlab.model.source import Path as PathText
from hyperpod_jlab.server.answers import Run, run_answer
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel
from hyperpod_jlab.server.submit import under_root
from hyperpod_jlab.services.listing import Listing, Wanted
from hyperpod_jlab.services.run_files import SentCode
from hyperpod_jlab.services.sent_cells import cell_text, newest_of_cells, sent_cells
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

_NEWEST = 100


class CellsQuery(RequestModel):
    """Which notebook."""

    notebook: Annotated[PathText, Field(max_length=4096)]
    """The notebook's path under the server's root."""
    limit: Annotated[int, Field(ge=1, le=1000)] = _NEWEST
    """Look at this many of its newest runs at most."""


class RunOfCell(TypedDict):
    """The newest run that has a cell, and the CRC-32 of the cell's source as it was sent."""

    id: str
    checksum: str
    run_id: str


class NotebookCells(TypedDict):
    """The newest runs of a notebook, newest first, and for each cell the newest run that has it."""

    runs: list[Run]
    cells: list[RunOfCell]


class SentCellText(TypedDict):
    """A cell as it stood in the notebook when it was sent; its text is null when that cannot be read any more."""

    number: int
    id: str | None
    checksum: str | None
    text: str | None


class SentCells(TypedDict):
    """The cells that went with a run, and its notebook: absolute, and its path under the server's root when it lies there."""

    notebook: str | None
    path: str | None
    cells: list[SentCellText]


async def list_cells(call: Call, query: CellsQuery) -> NotebookCells:
    """For each cell of a notebook the newest run that has it."""
    hyperpod = await call.hyperpod()
    path = _absolute(call.root, query.notebook)
    wanted = Wanted(notebook=path, limit=query.limit)
    listing = await hyperpod.runs.list(wanted)
    return await asyncio.to_thread(_cells_answer, hyperpod.partition, listing)


def _cells_answer(partition: Partition, listing: Listing) -> NotebookCells:
    found = newest_of_cells(partition, [run.run_id for run in listing.runs])
    return {
        "runs": [run_answer(run) for run in listing.runs],
        "cells": [
            {"id": cell, "checksum": checksum, "run_id": run_id}
            for cell, (run_id, checksum) in found.items()
        ],
    }


def _absolute(root: Path, notebook: str) -> str:
    """A notebook's path as runs have it."""
    root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
    return str(under_root(root, root / notebook.strip("/"), "notebook"))


async def list_sent_cells(call: Call, run_id: str) -> SentCells:
    """The cells that went with a run, as they stood in the notebook; none for other sources."""
    hyperpod = await call.hyperpod()
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    return await asyncio.to_thread(_sent, bundle, call.root)


def _sent(bundle: BundleReader, root: Path) -> SentCells:
    notebook, code = bundle.head().notebook, SentCode(bundle)
    root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
    inside = notebook is not None and Path(notebook).is_relative_to(root)
    return {
        "notebook": notebook,
        "path": Path(notebook).relative_to(root).as_posix() if notebook and inside else None,
        "cells": [
            {
                "number": cell.number,
                "id": cell.id,
                "checksum": cell.checksum,
                "text": cell_text(code, cell),
            }
            for cell in sent_cells(code)
        ],
    }
