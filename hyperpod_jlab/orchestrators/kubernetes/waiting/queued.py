"""What Kueue says of runs that wait: their objects tell a run that waits for quota from one that somebody suspended in no way (research); its workloads do."""

from __future__ import annotations

from collections.abc import Mapping

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.tables.kueue import WorkloadRow
from hyperpod_jlab.orchestrators.kubernetes.tables.kueue_look import KueueLook
from hyperpod_jlab.orchestrators.kubernetes.waiting.kueue_words import workload_words


async def with_queue_words(
    kueue: KueueLook, words: Mapping[str, Observation]
) -> dict[str, Observation]:
    """The words on runs, with Kueue's reasons for those that are suspended; as they are where Kueue cannot be asked.

    Args:
        kueue: The cluster's Kueue; asked only when a run is suspended.
        words: What the runs' objects say, by run id.
    """
    found = dict(words)
    if not any(_may_be_queued(word) for word in words.values()):
        return found
    try:
        seen = await kueue.workloads()
    except HyperpodError:
        return found
    rows = (seen.rows or ()) if seen is not None else ()
    by_job = {row.owner[1]: row for row in rows if row.owner and row.state in {"waiting", "off"}}
    for run_id, word in words.items():
        row = by_job.get(word.scheduler_id or "")
        if row is not None and _may_be_queued(word):
            found[run_id] = _told(word, row)
    return found


def _may_be_queued(word: Observation) -> bool:
    return word.state == "waiting" and word.reason_code == "suspended"


def _told(word: Observation, row: WorkloadRow) -> Observation:
    said = workload_words(row)
    return word.model_copy(update={"reason": said.words, "reason_code": said.code})
