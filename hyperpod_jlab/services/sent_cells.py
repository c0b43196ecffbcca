"""The cells of notebooks that went with runs: how a face knows which cell a run came from, with nothing written into the notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.run_files import code_text
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

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


def sent_cells(bundle: BundleReader) -> tuple[SentCell, ...]:
    """The cells that went with a run; none when it came from no notebook. May block.

    Raises:
        NotFoundError: There is no such run.
        DamagedBundleError: Its list of files cannot be read.
    """
    if not any(entry["path"] == _PLAN for entry in bundle.files()):
        return ()
    try:
        listed = json.loads(code_text(bundle, _PLAN))["cells"]
        return tuple(
            SentCell(entry["number"], entry.get("id"), entry.get("checksum"), entry["file"])
            for entry in listed
        )
    except (KeyError, TypeError, ValueError, AttributeError):  # the run itself may write there
        return ()


def newest_of_cells(partition: Partition, run_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """For each cell id the newest run that has it, and the checksum of what was sent. May block.

    Args:
        partition: The storage partition.
        run_ids: Runs, newest first.
    """
    found: dict[str, tuple[str, str]] = {}
    for run_id in run_ids:
        for cell in _known_cells(partition, run_id):
            if cell.id is not None and cell.checksum is not None:
                found.setdefault(cell.id, (run_id, cell.checksum))
    return found


@lru_cache(maxsize=2048)
def _known_cells(partition: Partition, run_id: str) -> tuple[SentCell, ...]:
    """What was sent never changes; a run that cannot be read has no cells."""
    try:
        return sent_cells(BundleReader(partition, run_id))
    except HyperpodError:
        return ()
