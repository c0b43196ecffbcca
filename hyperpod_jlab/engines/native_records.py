"""Records of manifests that run without our launcher, as it would have written them (docs/bundle-format.md). Everything may block.

Any number of observers may write them at once: all write the same, and existing files stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.files import storage_errors, to_json
from hyperpod_jlab.storage.records import BundleReader

_MAX_RECORD_BYTES = 4 << 20


class NativeRecords:
    """The records of one run; all methods raise `StorageError` when the partition is not writable, or the run is another user's."""

    def __init__(self, bundle: BundleReader) -> None:
        self._bundle = bundle
        self._status = bundle.records / "status"

    def claim(self, scheduler_id: str, attempt: int, incarnation: str, *, node: str | None, time: float) -> None:
        """Claim the run and one of its attempts, which started at that time on this (first) node."""
        claim = {"scheduler_id": scheduler_id, "time": time}
        self.create(self._status / "claim.json", {**claim, "node": node})
        path = self._status / f"attempt-{attempt}" / "claim.json"
        self.create(path, {**claim, "incarnation": incarnation})

    def node(self, attempt: int, rank: int) -> Path:
        """The path of a node's record in an attempt."""
        return self._status / f"attempt-{attempt}" / f"node-{rank}.json"

    def create(self, path: Path, record: Mapping[str, Any]) -> bool:
        """Write a record if none exists; returns whether this call did."""
        self._make(path.parent)
        with storage_errors(path):
            return descent.create(path, to_json(dict(record)), mode=self._bundle.file_mode)

    def replace(self, path: Path, record: Mapping[str, Any]) -> None:
        """Replace a record."""
        if read_record(path) != record:
            self._make(path.parent)
            with storage_errors(path):
                descent.replace(path, to_json(dict(record)), mode=self._bundle.file_mode)

    def _make(self, folder: Path) -> None:
        """Create a folder below the bundle, never the bundle itself: a deleted one must not come back."""
        self._bundle.check_writable(folder)
        with storage_errors(folder):
            descent.make_folders(self._bundle.folder, folder, self._bundle.folder_mode)


def node_record(
    rank: int,
    node: str,
    started_at: float,
    *,
    ended_at: float | None = None,
    exit_code: int | None = None,
    error: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """The record of a node in an attempt; `more` is what only one orchestrator knows."""
    return {
        "format": 1,
        "node_rank": rank,
        "node": node,
        "started_at": started_at,
        "ended_at": ended_at,
        "exit_code": exit_code,
        "signal": None,
        "error": error,
        **fields,
    }


def read_record(path: Path) -> dict[str, Any]:
    """A record, or an empty one if there is none."""
    try:
        document = json.loads(descent.read(path, _MAX_RECORD_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
