"""Submit a run, and preview exactly what would be submitted."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from hyperpod_jlab.capture.captured import CommandItem, PreviewPart
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.run_id import check_run_id
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.spec import Path as PathText
from hyperpod_jlab.run.cost import Estimate
from hyperpod_jlab.run.files import SentCode, cell_text, newest_run_by_cell, sent_cells
from hyperpod_jlab.run.listing import RunFilter, RunPage
from hyperpod_jlab.run.submit import Request, Step, SubmitPreview
from hyperpod_jlab.server.answers import OwnedRun, RenderedText, to_owned_run
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from hyperpod_jlab.run.services import Hyperpod


class SubmitBody(RequestModel):
    """What to run."""

    max_bytes: ClassVar[int] = 32 << 20

    run_id: str | None = None
    """A run id from the client: sending the same id again returns the same run."""
    cluster: str | None = None
    """The cluster; default: the configured one."""
    spec: JobSpec
    """The spec."""
    base: Annotated[PathText | None, Field(max_length=4096)] = None
    """The base folder of the spec's paths, relative to the server's root; default: the root itself."""
    notebook: dict[str, Any] | None = None
    """The notebook with unsaved edits; default: the file."""
    secrets: dict[str, str] = Field(default_factory=dict)
    """Values of the spec's secrets that have no reference. They are never returned, logged or stored in the spec."""
    clone_of: str | None = None
    """An earlier run whose code is submitted again; the spec's source is then informational."""
    trust_owner: str | None = None
    """The owner of the run `clone_of`: confirms that another user's code is to run with your rights."""
    accept_cost: bool = False
    """Confirms a cost over the limit of the configuration."""


@dataclass(frozen=True)
class Preview:
    """Exactly what would run."""

    run_id: str
    name: str
    rendered: RenderedText
    command: list[str]
    files: list[str]
    parts: tuple[PreviewPart, ...]
    findings: tuple[Finding, ...]
    cost: Estimate | None


async def submit_run(call: Call, body: SubmitBody) -> OwnedRun:
    """Submit a run. 201 if it is new, 200 if this run id was submitted before."""
    hyperpod = await call.hyperpod()
    steps: list[Step] = []
    try:
        request = await _request(call, hyperpod, body)
        run_id = await hyperpod.submitter.submit(request, steps.append)
    except HyperpodError as error:
        raise _in_body(error) from error
    call.status = 201 if "committed" in steps else 200
    run = await hyperpod.runs.get(run_id)
    call.process.events.emit_change(run)
    return to_owned_run(run)


async def preview_run(call: Call, body: SubmitBody) -> Preview:
    """Preview exactly what would run, with all findings. Starts the interpreter, but not another user's before `trust_owner` confirms it; writes nothing."""
    hyperpod = await call.hyperpod()
    try:
        request = await _request(call, hyperpod, body)
        preview = await hyperpod.submitter.preview(request)
    except HyperpodError as error:
        raise _in_body(error) from error
    return await asyncio.to_thread(_to_preview, preview)


async def _request(call: Call, hyperpod: Hyperpod, body: SubmitBody) -> Request:
    """The body as the services' request.

    Raises:
        InvalidInputError: An id is invalid, or a path leads out of the server's root.
    """
    for field, run_id in (("run_id", body.run_id), ("clone_of", body.clone_of)):
        if run_id is not None:
            _check_id(field, run_id)
    base = await asyncio.to_thread(_base, call.root, body)
    return Request(
        body.spec,
        cluster=body.cluster,
        run_id=body.run_id,
        base=base,
        notebook=body.notebook,
        secrets=body.secrets,
        clone_of=body.clone_of,
        trust_owner=body.trust_owner,
        accept_cost=body.accept_cost,
        interpreter=await _kernel_python(call, hyperpod, body, base),
    )


async def _kernel_python(call: Call, hyperpod: Hyperpod, body: SubmitBody, base: Path) -> str | None:
    """The Python of the notebook's kernel, if its packages are to be captured."""
    source, kernels = body.spec.source, call.process.kernels
    if body.clone_of is not None:  # its packages were captured; the source may be anything
        return None
    if body.spec.environment.capture is None or source.kind != "notebook" or kernels is None:
        return None
    from hyperpod_jlab.capture.notebook import read_kernel_name

    path = base / _expanded(source.path)
    if body.notebook is not None:
        name = read_kernel_name(path, body.notebook)
    else:
        name = await hyperpod.isolated.call(read_kernel_name, path)
    return await asyncio.to_thread(kernels.python, name) if name else None


def _check_id(field: str, run_id: str) -> None:
    try:
        check_run_id(run_id)
    except InvalidInputError as error:
        error.detail["field"] = field
        raise


def _base(root: Path, body: SubmitBody) -> Path:
    """The base folder of paths. As in Jupyter's file browser, symbolic links under the root may lead anywhere."""
    root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
    base = under_root(root, root / (body.base or "").strip("/"), "base")
    if not base.is_dir():
        raise InvalidInputError("base: folder not found below the root folder of the server", detail={"field": "base"})
    if body.clone_of is None:
        path = getattr(body.spec.source, "path", None)
        if path is not None:
            under_root(root, base / _expanded(path), "spec.source.path")
        if body.spec.files.root is not None:
            under_root(root, base / _expanded(body.spec.files.root), "spec.files.root")
    return base


_MAX_PATH_LENGTH, _MAX_NAME_LENGTH = 4096, 255
"""Maximum bytes of a path and of a name in it (Linux: PATH_MAX, including the final NUL, and NAME_MAX)."""


def under_root(root: Path, path: Path, field: str) -> Path:
    """The path without dot segments.

    Raises:
        InvalidInputError: It leads out of the root, or exceeds the system's limit.
    """
    normalized = Path(os.path.normpath(path))
    if len(os.fsencode(normalized)) >= _MAX_PATH_LENGTH or any(
        len(os.fsencode(name)) > _MAX_NAME_LENGTH for name in normalized.parts
    ):
        raise InvalidInputError(
            f"{field}: the path is too long",
            code="path_too_long",
            hint=f"use a path shorter than {_MAX_PATH_LENGTH} bytes with names of at most {_MAX_NAME_LENGTH} bytes",
            detail={"field": field},
        )
    if normalized != root and root not in normalized.parents:
        raise InvalidInputError(
            f"{field}: it is outside the root folder of the server",
            code="outside_root",
            hint="use a path relative to the root of the file browser",
            detail={"field": field},
        )
    return normalized


def _expanded(text: str) -> Path:
    """The path as capture expands it: ``~`` is a home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # no such user
        return Path(os.sep) / text


def _in_body(error: HyperpodError) -> HyperpodError:
    """The error with its field as a path in the body; the services report paths in the spec."""
    field = error.detail.get("field")
    if isinstance(field, str) and field.split(".")[0] in JobSpec.model_fields:
        error.detail["field"] = f"spec.{field}"
    return error


def _to_preview(preview: SubmitPreview) -> Preview:
    captured = preview.captured
    return Preview(
        run_id=preview.run_id,
        name=preview.spec.name or captured.name,
        rendered=RenderedText(preview.rendered.filename, preview.rendered.text),
        command=[_item_text(item, preview.plan.get("python")) for item in captured.command],
        files=[*(file.path for file in captured.files), *(f"work/{file.path}" for file in captured.project)],
        parts=tuple(captured.parts),
        findings=tuple(preview.findings),
        cost=preview.cost,
    )


def _item_text(item: CommandItem, python: str | None) -> str:
    """A command item for display: the interpreter by its path, files by their path in the bundle."""
    if isinstance(item, str):
        return item
    if "bundle" in item:
        return f"$BUNDLE/{item['bundle']}"
    return python or "python3"


# --------------------------------------------------------------------------------------------------
# ``GET schema``: the spec's JSON Schema, from which the submit form is generated.


async def show_schema(call: Call) -> dict[str, Any]:  # noqa: ARG001 - every endpoint is given its call
    """Get the JSON Schema of the spec; `x-basic` marks the fields that a form shows first."""
    return await asyncio.to_thread(spec_schema)


@lru_cache(maxsize=1)
def spec_schema() -> dict[str, Any]:
    """The spec's schema with our annotations."""
    schema = JobSpec.model_json_schema()
    _mark(schema)
    return schema


def _mark(node: Any) -> None:
    if isinstance(node, dict):
        option = node.get("x-option")
        if isinstance(option, dict) and option.get("basic"):
            node["x-basic"] = True
        for value in node.values():
            _mark(value)
    elif isinstance(node, list):
        for value in node:
            _mark(value)


# --------------------------------------------------------------------------------------------------
# Requests about a notebook's cells: their runs, and the submitted source.

_MAX_RUNS = 100


class CellsQuery(RequestModel):
    """Which notebook."""

    notebook: Annotated[PathText, Field(max_length=4096)]
    """The notebook's path relative to the server's root."""
    limit: Annotated[int, Field(ge=1, le=1000)] = _MAX_RUNS
    """Maximum number of the notebook's newest runs to search."""


@dataclass(frozen=True)
class RunOfCell:
    """The newest run of a cell, the CRC-32 of the submitted source, and its number among the notebook's code cells then."""

    id: str
    checksum: str
    run_id: str
    number: int


@dataclass(frozen=True)
class NotebookCells:
    """The newest runs of a notebook, newest first, and the newest run of each cell."""

    runs: list[OwnedRun]
    cells: list[RunOfCell]


@dataclass(frozen=True)
class SentCellText:
    """A cell as it was submitted; its text is null if it cannot be read."""

    number: int
    id: str | None
    checksum: str | None
    text: str | None


@dataclass(frozen=True)
class SentCells:
    """The cells of a run, and its notebook: the absolute path, and the path relative to the server's root if it is below it."""

    notebook: str | None
    path: str | None
    cells: list[SentCellText]


async def list_cells(call: Call, query: CellsQuery) -> NotebookCells:
    """List the newest run of each cell of a notebook."""
    hyperpod = await call.hyperpod()
    path = _absolute(call.root, query.notebook)
    run_filter = RunFilter(notebook=path, limit=query.limit)
    listing = await hyperpod.runs.list(run_filter)
    return await asyncio.to_thread(_to_notebook_cells, hyperpod.partition, listing)


def _to_notebook_cells(partition: Partition, listing: RunPage) -> NotebookCells:
    newest = newest_run_by_cell(partition, [run.run_id for run in listing.runs])
    return NotebookCells(
        [to_owned_run(run) for run in listing.runs],
        [RunOfCell(ident, cell.checksum or "", run_id, cell.number) for ident, (run_id, cell) in newest.items()],
    )


def _absolute(root: Path, notebook: str) -> str:
    """A notebook's path in the form in which runs store it."""
    root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
    return str(under_root(root, root / notebook.strip("/"), "notebook"))


async def list_sent_cells(call: Call, run_id: str) -> SentCells:
    """List the cells of a run as they were submitted; empty for other sources."""
    hyperpod = await call.hyperpod()
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    return await asyncio.to_thread(_to_sent_cells, bundle, call.root)


def _to_sent_cells(bundle: BundleReader, root: Path) -> SentCells:
    notebook, code = bundle.head().notebook, SentCode(bundle)
    root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
    is_inside = notebook is not None and Path(notebook).is_relative_to(root)
    return SentCells(
        notebook=notebook,
        path=Path(notebook).relative_to(root).as_posix() if notebook and is_inside else None,
        cells=[SentCellText(cell.number, cell.id, cell.checksum, cell_text(code, cell)) for cell in sent_cells(code)],
    )
