"""What was sent with a run, to be looked at: its code as it was then, and the script or manifest that the scheduler was given."""

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
"""Bytes of the largest file that is shown as text."""

_RENDERED = ("sbatch.sh", "manifest.yaml", "local.json")


@dataclass(frozen=True)
class SentFile:
    """One file of the code, by its place in the bundle, and its bytes; None when it is gone."""

    path: str
    size: int | None


def list_code_files(bundle: BundleReader) -> tuple[SentFile, ...]:
    """The files of a run's code and project, as they were sent. May block.

    Raises:
        NotFoundError: There is no such run.
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
    """The code of one run as it was sent, for looking at several files: which there are is read once.

    Raises:
        NotFoundError: There is no such run.
        DamagedBundleError: The list of files cannot be read.
    """

    def __init__(self, bundle: BundleReader) -> None:
        self._bundle = bundle
        self._listed = {str(entry["path"]): entry for entry in bundle.files()}

    def __contains__(self, path: str) -> bool:
        """Whether such a file was sent."""
        return path in self._listed

    def text(self, path: str) -> str:
        """The text of one file. May block.

        Raises:
            NotFoundError: No such file was sent, or it is gone.
            UnsupportedError: It is no text, or too long to be shown.
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
    """The text of one file of the code, as it was sent. May block.

    Raises:
        NotFoundError: There is no such run, or no such file was sent with it, or it is gone.
        UnsupportedError: It is no text, or too long to be shown.
        DamagedBundleError: The list of files cannot be read.
    """
    return SentCode(bundle).text(path)


def read_rendered(bundle: BundleReader) -> tuple[str, str]:
    """The name and the text of what the scheduler was given. May block.

    Raises:
        NotFoundError: There is no such run, or it has none.
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
    """The place of a file that was sent to the scheduler as it was written (docs/bundle-format.md)."""
    try:
        script = from_json(descent.read(bundle.folder / "native.json", MAX_TEXT_BYTES))["script"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return script if is_inner_path(script) else None


def find_sent_paths(bundle: BundleReader, entry: Mapping[str, Any]) -> Sequence[Path]:
    """Where the bytes of a file lie that was sent, the best first: in its owner's content store, else in the bundle, where the run may have changed them."""
    stored_file = stored_path(
        bundle.folder.parents[2], entry["digest"], executable=entry["executable"]
    )
    return stored_file, bundle.folder / str(entry["path"])


def _text(paths: Sequence[Path], name: str) -> str:
    data, problem = b"", "it does not exist"
    for path in paths:
        try:
            data = descent.read(path, MAX_TEXT_BYTES)
            break
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise UnsupportedError(
                    f"{name} is too large to be shown", code="too_long"
                ) from error
            problem = error.strerror or str(error)
    else:
        raise NotFoundError(f"{name} cannot be read: {problem}", code="no_such_file")
    if b"\0" in data:
        raise UnsupportedError(f"{name} is not text", code="no_text")
    return data.decode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------
# The cells of notebooks that went with runs: how a face knows which cell a run came from, with nothing written into the notebook.

_PLAN = "code/cells.json"


@dataclass(frozen=True)
class SentCell:
    """One cell as it was sent.

    Attributes:
        number: Its place among the notebook's code cells then, from 1.
        id: Its id in the notebook; None where it had none, or where the run was sent by an older version.
        checksum: The CRC-32 of its source, or None.
        file: Its place in the bundle.
    """

    number: int
    id: str | None
    checksum: str | None
    file: str


def sent_cells(code: SentCode) -> tuple[SentCell, ...]:
    """The cells that went with a run; none when it came from no notebook. May block.

    Raises:
        NotFoundError: Their list is gone.
        UnsupportedError: Their list is no text any more.
    """
    if _PLAN not in code:
        return ()
    try:
        cells = json.loads(code.text(_PLAN))["cells"]
        return tuple(
            SentCell(entry["number"], entry.get("id"), entry.get("checksum"), entry["file"])
            for entry in cells
        )
    except (KeyError, TypeError, ValueError, AttributeError):  # the run itself may write there
        return ()


def cell_text(code: SentCode, cell: SentCell) -> str | None:
    """A cell's source as it was sent; None when it cannot be read any more. May block."""
    try:
        return code.text(f"code/{cell.file}")
    except HyperpodError:  # the run itself may have changed or removed the file
        return None


def newest_run_by_cell(partition: Partition, run_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """For each cell id the newest run that has it, and the checksum of what was sent. May block.

    Args:
        partition: The storage partition.
        run_ids: Runs, newest first.
    """
    newest: dict[str, tuple[str, str]] = {}
    for run_id in run_ids:
        try:
            cells = _cached_cells(partition, run_id)
        except HyperpodError:  # it cannot be read now; perhaps it can next time
            continue
        for cell in cells:
            if cell.id is not None and cell.checksum is not None:
                newest.setdefault(cell.id, (run_id, cell.checksum))
    return newest


@lru_cache(maxsize=2048)
def _cached_cells(partition: Partition, run_id: str) -> tuple[SentCell, ...]:
    """What was sent never changes."""
    return sent_cells(SentCode(BundleReader(partition, run_id)))
