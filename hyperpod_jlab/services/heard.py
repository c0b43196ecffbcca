"""Whether a run's nodes were heard of just now: where the scheduler does not answer, the launchers' own files tell that it runs."""

from __future__ import annotations

import time

from hyperpod_jlab.logs.activity import HEARTBEAT
from hyperpod_jlab.model.records import RunRecords
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

PATIENCE = 12 * HEARTBEAT
"""Seconds without a sign after which a node counts as silent: the clocks of the nodes and of this machine may differ a little."""


def nodes_heard(bundle: BundleReader, records: RunRecords) -> bool:
    """Whether each node of the newest attempt that has not said its end has written its activity record just now. Blocking.

    Args:
        bundle: The bundle of the run, or of an array's child.
        records: Its records.
    """
    if not records.attempts:
        return False
    attempt = records.attempts[-1]
    over = {node.node_rank for node in attempt.nodes if node.ended_at is not None}
    logs = bundle.records / "logs" / f"attempt-{attempt.number}"
    now = time.time()
    for rank in range(records.head.nodes):
        if rank in over:
            continue
        try:
            written = descent.state(logs / f"node-{rank}.activity.json").st_mtime
        except OSError:
            return False
        if abs(now - written) > PATIENCE:
            return False
    return True
