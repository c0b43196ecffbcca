"""The cells of notebooks that went with runs: how a face knows which cell a run came from, with nothing written into the notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.runs.files import SentCode
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


def sent_cells(code: SentCode) -> tuple[SentCell, ...]:
    """The cells that went with a run; none when it came from no notebook. May block.

    Raises:
        NotFoundError: Their list is gone.
        UnsupportedError: Their list is no text any more.
    """
    if _PLAN not in code:
        return ()
    try:
        listed = json.loads(code.text(_PLAN))["cells"]
        return tuple(
            SentCell(entry["number"], entry.get("id"), entry.get("checksum"), entry["file"])
            for entry in listed
        )
    except (KeyError, TypeError, ValueError, AttributeError):  # the run itself may write there
        return ()


def cell_text(code: SentCode, cell: SentCell) -> str | None:
    """A cell's source as it was sent; None when it cannot be read any more. May block."""
    try:
        return code.text(f"code/{cell.file}")
    except HyperpodError:  # the run itself may have changed or removed the file
        return None


def newest_of_cells(partition: Partition, run_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """For each cell id the newest run that has it, and the checksum of what was sent. May block.

    Args:
        partition: The storage partition.
        run_ids: Runs, newest first.
    """
    found: dict[str, tuple[str, str]] = {}
    for run_id in run_ids:
        try:
            cells = _known_cells(partition, run_id)
        except HyperpodError:  # it cannot be read now; perhaps it can next time
            continue
        for cell in cells:
            if cell.id is not None and cell.checksum is not None:
                found.setdefault(cell.id, (run_id, cell.checksum))
    return found


@lru_cache(maxsize=2048)
def _known_cells(partition: Partition, run_id: str) -> tuple[SentCell, ...]:
    """What was sent never changes."""
    return sent_cells(SentCode(BundleReader(partition, run_id)))
