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
from hyperpod_jlab.capture.runtime.recorder import MAX_FILE, MAX_OUTPUT
from hyperpod_jlab.core.errors import NotFoundError, StorageError, UnsupportedError
from hyperpod_jlab.core.run import ENDED, Run
from hyperpod_jlab.features.notebook.outputs import CellOutputs, fill_cells, read_outputs
from hyperpod_jlab.logs.stream import Stream, attempt_folder
from hyperpod_jlab.run.files import find_sent_paths
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.big_records import BUDGET_S, Deadline, is_too_complex, read_lines
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError

_MAX_NOTEBOOK_BYTES, _MAX_FOREIGN_NOTEBOOK_BYTES = 64 << 20, 16 << 20
_MAX_RECORD_BYTES, _MAX_FOREIGN_RECORD_BYTES = MAX_FILE + MAX_OUTPUT, 64 << 20
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
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    return await hyperpod.big_reads.run(lambda deadline: _read(bundle, run, rank, attempt, deadline))


def _read(bundle: BundleReader, run: Run, rank: int, attempt: int | None, deadline: Deadline) -> ExecutedNotebook:
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
    command = f"hpj logs {run.run_id} --rank {rank} --attempt {chosen}"
    most = _MAX_RECORD_BYTES if bundle.is_own else _MAX_FOREIGN_RECORD_BYTES
    record = _Record(folder / stream.file_name, deadline, most, command)
    outputs = record.outputs()
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
    gap = record.find_gap()
    if gap is not None:
        document["metadata"]["hyperpod"]["not_shown"] = gap
    return ExecutedNotebook(run.run_id, _source_name(bundle), rank, chosen, run.status.ended, document)


def _missing(run: Run, what: str, field: str, hint: str) -> NotFoundError:
    return NotFoundError(
        f"{run.run_id} has no {what}", code=f"no_such_{field}", hint=hint, detail={"field": field, "run_id": run.run_id}
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
            data = descent.read(path, _MAX_NOTEBOOK_BYTES if bundle.is_own else _MAX_FOREIGN_NOTEBOOK_BYTES)
            document: Any = None if is_too_complex(data) else from_json(data)
            if _is_notebook(document):
                for cell in document["cells"]:
                    # Jupyter would believe it, and run the scripts of a job's outputs.
                    cell["metadata"].pop("trusted", None)
                return dict(document)
    raise DamagedBundleError(
        f"the notebook of {bundle.run_id} cannot be read", detail={"run_id": bundle.run_id, "path": NOTEBOOK}
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


class _Record:
    """The record of one rank's outputs, as much of it as its limits allow.

    Args:
        log: The rank's log, beside which it is.
        deadline: When reading ends.
        most: The number of bytes that are read.
        command: The command that shows the log.
    """

    def __init__(self, log: Path, deadline: Deadline, most: int, command: str) -> None:
        self._log = log
        self._deadline = deadline
        self._most = most
        self._command = command
        self._size = 0

    def outputs(self) -> dict[int, CellOutputs]:
        """The outputs of cells; none if the rank has not started, or its record is gone."""
        try:
            descriptor = descent.open_file(self._log.with_suffix(".outputs.jsonl"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unreadable(error) from error
        try:
            self._size = os.fstat(descriptor).st_size
            end = min(self._size, self._most)
            read = read_lines(descriptor, 0, end, self._deadline, longest=MAX_OUTPUT)
            with _opened(self._log) as log:
                size = os.fstat(log).st_size if log is not None else 0
                reader = _reader(log, self._command)
                return read_outputs((line for line, _ in read), size, reader, self.find_gap)
        except OSError as error:
            raise _unreadable(error) from error
        finally:
            os.close(descriptor)

    def find_gap(self) -> str | None:
        """Why not all of it was read; None if it was."""
        if self._deadline.is_over():
            why = f"to read all outputs takes longer than {BUDGET_S:g} s"
        elif self._size > self._most:
            why = f"the record of outputs is longer than {self._most >> 20} MiB"
        else:
            return None
        return f"{why}; the printed text is in the log: {self._command}"


def _unreadable(error: OSError) -> StorageError:
    return StorageError(f"the outputs of cells cannot be read: {error.strerror}")


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
            cell.outputs.append({"output_type": "error", "ename": "RunEnded", "evalue": reason, "traceback": [text]})


def _timestamp(seconds: float) -> str:
    """As Jupyter writes the times of a cell."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
