"""Runs with nodes and attempts as they would have been, made without a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from hyperpod_jlab.storage.partition import Partition
from tests.storage.bundles import SPEC, head, write_files

Attempt = tuple[Sequence[str], float, float]
"""The nodes of an attempt, and when it began and ended, in minutes from now."""


def forge_run(
    partition: Partition, run_id: str, cluster: str, orchestrator: str, *attempts: Attempt, ended: bool = True
) -> None:
    """Write the bundle of a run; each attempt ended with exit code 0, the last one only if `ended`."""
    partition.prepare()
    now = time.time()
    created = now + 60 * min((begin for _, begin, _ in attempts), default=0)
    nodes = max((len(names) for names, _, _ in attempts), default=1)
    files: dict[str, Any] = {
        "bundle.json": head(run_id, created - 2, cluster=cluster, orchestrator=orchestrator, nodes=nodes),
        "spec.json": SPEC,
        "submission.json": {"scheduler_id": "17", "submitted_at": created - 1},
    }
    for number, attempt in enumerate(attempts, 1):
        over = ended or number < len(attempts)
        files |= _attempt(f"status/attempt-{number}", number, attempt, now, over=over)
    write_files(partition.bundle(run_id), files.items())


def _attempt(folder: str, number: int, attempt: Attempt, now: float, *, over: bool) -> dict[str, Any]:
    names, begin, end = attempt
    start = now + 60 * begin
    claim = {"scheduler_id": "17", "incarnation": f"17.{number}", "time": start}
    files: dict[str, Any] = {"status/claim.json": {"scheduler_id": "17", "time": start}, f"{folder}/claim.json": claim}
    finish = {"ended_at": now + 60 * end, "exit_code": 0} if over else {}
    for rank, name in enumerate(names):
        record = {"node_rank": rank, "node": name, "started_at": start, **finish}
        files[f"{folder}/node-{rank}.json"] = record
    return files
