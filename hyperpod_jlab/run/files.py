"""The files of a submitted run: its code at that time, and the script or manifest for the scheduler."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, UnsupportedError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.bundle import is_inner_path
from hyperpod_jlab.storage.content import stored_path
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

MAX_TEXT_BYTES = 4 << 20
"""Maximum size of a file that is shown as text, in bytes."""

_RENDERED = ("sbatch.sh", "manifest.yaml", "local.json")


@dataclass(frozen=True)
class SentFile:
    """A code file, by its path in the bundle, and its bytes; None if it is missing."""

    path: str
    size: int | None


def list_code_files(bundle: BundleReader) -> tuple[SentFile, ...]:
    """The files of a run's code and project, as submitted. May block.

    Raises:
        NotFoundError: The run does not exist.
        DamagedBundleError: Its list of files cannot be read.
    """
    files = []
    for entry in bundle.files():
        size = None
        for path in find_sent_paths(bundle, entry):
            with contextlib.suppress(OSError):
                size = descent.state(path).st_size
                break
        files.append(SentFile(entry["path"], size))
    return tuple(files)


class SentCode:
    """The submitted code of one run; reads the list of files once for any number of files.

    Raises:
        NotFoundError: The run does not exist.
        DamagedBundleError: The list of files cannot be read.
    """

    def __init__(self, bundle: BundleReader) -> None:
        self._bundle = bundle
        self._listed = {str(entry["path"]): entry for entry in bundle.files()}

    def __contains__(self, path: str) -> bool:
        """Whether this file was submitted."""
        return path in self._listed

    def text(self, path: str) -> str:
        """The text of one file. May block.

        Raises:
            NotFoundError: The file was not submitted, or is missing.
            UnsupportedError: It is not text, or too long.
        """
        entry = self._listed.get(path)
        if entry is None:
            raise NotFoundError(
                f"{self._bundle.run_id} has no such file",
                code="no_such_file",
                detail={"field": "path", "run_id": self._bundle.run_id},
            )
        return _text(find_sent_paths(self._bundle, entry), path)


def code_text(bundle: BundleReader, path: str) -> str:
    """The text of one code file, as submitted. May block.

    Raises:
        NotFoundError: The run does not exist, or the file was not submitted with it or is missing.
        UnsupportedError: It is not text, or too long.
        DamagedBundleError: The list of files cannot be read.
    """
    return SentCode(bundle).text(path)


def read_rendered(bundle: BundleReader) -> tuple[str, str]:
    """The name and text of the script or manifest that the scheduler received. May block.

    Raises:
        NotFoundError: The run does not exist, or has no such file.
    """
    bundle.head()
    for name in _RENDERED:
        if descent.is_file(bundle.folder / name):
            return name, _text([bundle.folder / name], name)
    script = _native_script(bundle)
    if script is not None:
        return script, _text([bundle.folder / script], script)
    raise NotFoundError(f"{bundle.run_id} has no script", code="no_such_file")


def _native_script(bundle: BundleReader) -> str | None:
    """The path of a user's own script that was sent to the scheduler unchanged (docs/bundle-format.md)."""
    try:
        script = from_json(descent.read(bundle.folder / "native.json", MAX_TEXT_BYTES))["script"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return script if is_inner_path(script) else None


def find_sent_paths(bundle: BundleReader, entry: Mapping[str, Any]) -> Sequence[Path]:
    """Candidate paths of a submitted file's bytes, best first: its owner's content store, then the bundle, where the run may have changed them."""
    stored_file = stored_path(bundle.folder.parents[2], entry["digest"], executable=entry["executable"])
    return stored_file, bundle.folder / str(entry["path"])


def _text(paths: Sequence[Path], name: str) -> str:
    data, problem = b"", "it does not exist"
    for path in paths:
        try:
            data = descent.read(path, MAX_TEXT_BYTES)
            break
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise UnsupportedError(f"{name} is too large to be shown", code="too_long") from error
            problem = error.strerror or str(error)
    else:
        raise NotFoundError(f"{name} cannot be read: {problem}", code="no_such_file")
    if b"\0" in data:
        raise UnsupportedError(f"{name} is not text", code="no_text")
    return data.decode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------
# Notebook cells of runs: maps a cell to its runs without writing anything into the notebook.

_PLAN = "code/cells.json"


@dataclass(frozen=True)
class SentCell:
    """A cell as it was submitted.

    Attributes:
        number: Its position among the notebook's code cells at that time, from 1.
        id: Its id in the notebook; None if it had none, or if an older version submitted the run.
        checksum: The CRC-32 of its source, or None.
        file: Its path in the bundle.
    """

    number: int
    id: str | None
    checksum: str | None
    file: str


def sent_cells(code: SentCode) -> tuple[SentCell, ...]:
    """The cells that were submitted with a run; empty if it does not come from a notebook. May block.

    Raises:
        NotFoundError: Their list is missing.
        UnsupportedError: Their list is not text.
    """
    if _PLAN not in code:
        return ()
    try:
        cells = json.loads(code.text(_PLAN))["cells"]
        return tuple(
            SentCell(entry["number"], entry.get("id"), entry.get("checksum"), entry["file"]) for entry in cells
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        # The run can write to this file.
        return ()


def cell_text(code: SentCode, cell: SentCell) -> str | None:
    """A cell's source as it was submitted; None if it cannot be read. May block."""
    try:
        return code.text(f"code/{cell.file}")
    except HyperpodError:  # the run may have changed or removed the file
        return None


def newest_run_by_cell(partition: Partition, run_ids: Iterable[str]) -> dict[str, tuple[str, SentCell]]:
    """The newest run of each cell id, and the cell as submitted; only cells with a checksum. May block.

    Args:
        partition: The storage partition.
        run_ids: Runs, newest first.
    """
    newest: dict[str, tuple[str, SentCell]] = {}
    for run_id in run_ids:
        try:
            cells = _cached_cells(partition, run_id)
        except HyperpodError:  # a read error may be temporary: not cached
            continue
        for cell in cells:
            if cell.id is not None and cell.checksum is not None:
                newest.setdefault(cell.id, (run_id, cell))
    return newest


@lru_cache(maxsize=2048)
def _cached_cells(partition: Partition, run_id: str) -> tuple[SentCell, ...]:
    """Cached: submitted cells never change."""
    return sent_cells(SentCode(BundleReader(partition, run_id)))
