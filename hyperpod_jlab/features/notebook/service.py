"""The executed notebook of a run, while it runs and after its end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.capture.document import NOTEBOOK
from hyperpod_jlab.core.errors import NotFoundError, StorageError, UnsupportedError
from hyperpod_jlab.core.run import ENDED, Run
from hyperpod_jlab.features.notebook.outputs import CellOutputs, fill_cells, read_outputs
from hyperpod_jlab.logs.stream import Stream, attempt_folder
from hyperpod_jlab.run.files import find_sent_paths
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError

_MAX_NOTEBOOK_BYTES = 64 << 20
_MAX_RECORD_BYTES = 512 << 20
HEAD_BYTES, TAIL_BYTES = 256 << 10, 64 << 10
"""Of a longer text between two outputs, the notebook has the beginning and the end. The log has all of it."""


@dataclass(frozen=True)
class ExecutedNotebook:
    """A notebook with the outputs of one rank.

    Attributes:
        name: The file name of the notebook that was submitted.
        document: The notebook, nbformat 4. Its outputs are not trusted.
    """

    run_id: str
    name: str
    rank: int
    attempt: int
    ended: bool
    document: dict[str, Any]


async def read_executed_notebook(
    hyperpod: Hyperpod, run_id: str, rank: int = 0, attempt: int | None = None
) -> ExecutedNotebook:
    """The executed notebook.

    Args:
        hyperpod: The services.
        run_id: The run.
        rank: The global rank whose outputs are shown.
        attempt: The attempt; default: the newest.

    Raises:
        NotFoundError: The run, rank or attempt does not exist.
        UnsupportedError: The run is not a notebook, or is an array.
    """
    await asyncio.to_thread(hyperpod.runs.check_no_array, run_id, "notebooks")
    run = await hyperpod.runs.get(run_id)
    return await asyncio.to_thread(_read, hyperpod.runs.bundle(run_id), run, rank, attempt)


def _read(bundle: BundleReader, run: Run, rank: int, attempt: int | None) -> ExecutedNotebook:
    document = _sent_document(bundle)
    newest = max((one.number for one in run.attempts), default=1)
    chosen = newest if attempt is None else attempt
    if not 1 <= chosen <= newest:
        raise _missing(run, f"attempt {chosen}", "attempt", f"it has {newest}")
    ranks = run.nodes * run.processes_per_node
    if not 0 <= rank < ranks:
        has = "it has only rank 0" if ranks == 1 else f"it has ranks 0 to {ranks - 1}"
        raise _missing(run, f"rank {rank}", "rank", has)
    node, local = divmod(rank, run.processes_per_node)
    stream = Stream(chosen, node, local)
    folder = bundle.records / "logs" / attempt_folder(chosen)
    outputs = _outputs(folder / stream.file_name, _hint(run, rank, chosen))
    # Of the newest attempt the run says more: it may have been cancelled.
    told = next((one for one in run.attempts if one.number == chosen < newest), run.status)
    if told.state in ENDED and told.state != "succeeded":
        _tell_end(outputs, "attempt" if chosen < newest else "run", told.reason or told.state)
    fill_cells(document["cells"], outputs, _timestamp)
    document["metadata"]["hyperpod"] = {
        "run_id": run.run_id,
        "cluster": run.cluster,
        "rank": rank,
        "attempt": chosen,
        "state": told.state,
    }
    return ExecutedNotebook(
        run.run_id, _source_name(bundle), rank, chosen, run.status.ended, document
    )


def _missing(run: Run, what: str, field: str, hint: str) -> NotFoundError:
    return NotFoundError(
        f"{run.run_id} has no {what}",
        code=f"no_such_{field}",
        hint=hint,
        detail={"field": field, "run_id": run.run_id},
    )


def _sent_document(bundle: BundleReader) -> dict[str, Any]:
    entry = next((one for one in bundle.files() if one["path"] == NOTEBOOK), None)
    if entry is None:
        raise UnsupportedError(
            f"{bundle.run_id} has no notebook",
            code="no_notebook",
            hint="only a run of a notebook or of its cells has one; see its log with: hpj logs",
            detail={"run_id": bundle.run_id},
        )
    for path in find_sent_paths(bundle, entry):
        with contextlib.suppress(OSError, ValueError):
            document = from_json(descent.read(path, _MAX_NOTEBOOK_BYTES))
            if _is_notebook(document):
                for cell in document["cells"]:
                    # Jupyter would believe it, and run the scripts of a job's outputs.
                    cell["metadata"].pop("trusted", None)
                return dict(document)
    raise DamagedBundleError(
        f"the notebook of {bundle.run_id} cannot be read",
        detail={"run_id": bundle.run_id, "path": NOTEBOOK},
    )


def _is_notebook(document: Any) -> bool:
    """Whether the run's copy, which the run itself can write to, is still a notebook."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("metadata"), dict)
        and isinstance(document.get("cells"), list)
        and all(
            isinstance(cell, dict)
            and cell.get("cell_type") in ("code", "markdown", "raw")
            and isinstance(cell.get("source"), (str, list))
            and isinstance(cell.get("metadata"), dict)
            for cell in document["cells"]
        )
    )


def _source_name(bundle: BundleReader) -> str:
    source = bundle.spec().source
    return Path(source.path).name if source.kind == "notebook" else "notebook.ipynb"


def _hint(run: Run, rank: int, attempt: int) -> str:
    return f"hpj logs {run.run_id} --rank {rank} --attempt {attempt}"


def _outputs(log: Path, command: str) -> dict[int, CellOutputs]:
    """The outputs of one rank; none if it has not started, or its record is gone."""
    try:
        record = descent.read(log.with_suffix(".outputs.jsonl"), _MAX_RECORD_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(f"the outputs of cells cannot be read: {error.strerror}") from error
    with _opened(log) as descriptor:
        size = os.fstat(descriptor).st_size if descriptor is not None else 0
        return read_outputs(record, size, _reader(descriptor, command))


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[int | None]:
    try:
        descriptor = descent.open_file(log)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES, errno.EINVAL, errno.ELOOP):
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _reader(descriptor: int | None, command: str) -> Callable[[int, int], str]:
    def read(begin: int, end: int) -> str:
        if descriptor is None:
            return ""
        if end - begin <= HEAD_BYTES + TAIL_BYTES:
            return _text(os.pread(descriptor, end - begin, begin))
        head = os.pread(descriptor, HEAD_BYTES, begin)
        tail = os.pread(descriptor, TAIL_BYTES, end - TAIL_BYTES)
        head = head[: head.rfind(b"\n") + 1] or head
        tail = tail[tail.find(b"\n") + 1 :] or tail
        left_out = end - begin - len(head) - len(tail)
        return f"{_text(head)}[{left_out:,} bytes are left out here; the log has all: {command}]\n{_text(tail)}"

    return read


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _tell_end(outputs: dict[int, CellOutputs], what: str, reason: str) -> None:
    """Show in the cell that was running why it did not end."""
    for cell in outputs.values():
        if cell.ended_at is None:
            cell.failed = True
            text = f"The {what} ended in this cell: {reason}"
            cell.outputs.append(
                {"output_type": "error", "ename": "RunEnded", "evalue": reason, "traceback": [text]}
            )


def _timestamp(seconds: float) -> str:
    """As Jupyter writes the times of a cell."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
