"""Runs whose launchers are done though their job goes on: pods that failed are started again, by a runtime again and again, by OnFailure up to the job's limit."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.orchestrators.kubernetes.kinds.auto_resume import is_asked_for
from hyperpod_jlab.orchestrators.kubernetes.kinds.conditions import OBSERVER
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.orchestrators.kubernetes.watching.job_rows import JobRow
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_LARGEST = 1 << 20


def restarts_anyway(seen: JobRow) -> bool:
    """Whether a job's pods may be started again though they are done: a TrainJob's are its runtime's, those that HyperPod resumes have OnFailure."""
    return seen.kind.name == TrainJob.name or is_asked_for(seen.job)


def over(
    bundle: BundleReader, seen: JobRow, records: RunRecords, word: Observation
) -> Observation | None:
    """The end of a run that failed, as its node 0 said it; None as long as its job decides. Blocking.

    Args:
        bundle: The run.
        seen: Its job.
        records: Its records.
        word: What the job says: that it goes on.
    """
    if not restarts_anyway(seen) or not records.attempts:
        return None
    told = any(
        one.observer == OBSERVER and one.verdict and one.state == "ended"
        for one in records.observations
    )
    said = _said(bundle)
    code = said.get("exit_code")
    if said.get("scheduler_id") != word.scheduler_id or not isinstance(code, int) or code == 0:
        return None
    nodes = records.attempts[-1].nodes
    ended = [node.ended_at for node in nodes if node.ended_at is not None]
    if not told and (len(ended) < records.head.nodes or len(ended) < len(nodes)):
        return None
    changes = {
        "time": float(said.get("time") or word.time),
        "state": "ended",
        "verdict": "FAILED",
        # Node 0 ends with its own, which need not be the first.
        "exit_code": None if any(node.exit_code for node in nodes) else code,
        "reason": None,
        "reason_code": None,
    }
    return word.model_copy(update=changes)


def _said(bundle: BundleReader) -> dict[str, Any]:
    try:
        found = from_json(
            descent.read(bundle.records / "status" / "over" / "node-0.json", _LARGEST)
        )
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
