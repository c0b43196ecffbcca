"""Bundles as a run would have left them, made without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

SPEC = {"format": 1, "source": {"kind": "command", "command": "true"}}
PROCESS: dict[str, Any] = {
    "time": 1.0,
    "machine": "m",
    "boot": "b",
    "pid_namespace": "p",
    "pid": 1,
    "start_time": 1,
    "host": "h",
}


def head(run_id: str, created: float, **more: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "run_id": run_id,
        "name": f"name of {run_id}",
        "user": "ada",
        "host": "studio",
        "created_at": created,
        "cluster": "local",
        "orchestrator": "local",
        "spec_digest": "0",
        **more,
    }


def make_bundle(
    partition: Partition, run_id: str, *, created: float = 1.7e9, code: int | None = 0, **more: Any
) -> BundleReader:
    """A run that ended with an exit code, or that was only taken (code None)."""
    partition.prepare()
    files: dict[str, Any] = {
        "bundle.json": head(run_id, created, **more),
        "spec.json": SPEC,
        "submission.json": {"scheduler_id": f"m:{run_id}", "submitted_at": created + 1},
    }
    if code is not None:
        rank = {"rank": 0, "local_rank": 0, "ended_at": created + 3, "exit_code": code}
        node = {"node_rank": 0, "node": "n0", "started_at": created + 2, "ended_at": created + 3}
        files["status/claim.json"] = {"scheduler_id": f"m:{run_id}", "time": created + 2}
        claim = {"scheduler_id": f"m:{run_id}", "incarnation": "1", "time": created + 2}
        files["status/attempt-1/claim.json"] = claim
        files["status/attempt-1/node-0.json"] = {**node, "exit_code": code, "ranks": [rank]}
    folder = partition.bundle(run_id)
    staging = folder.with_name(f".staging-{run_id}")
    write_files(staging, files.items())
    staging.rename(folder)
    return BundleReader(partition, run_id)


def write_files(folder: Path, files: Iterable[tuple[str, Any]]) -> None:
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
