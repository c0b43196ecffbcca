"""Why a job failed before all of its launchers had begun: what Slurm says is "failed" and no more."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.orchestrators.seal import REFUSAL, UNTRUSTED, refusal
from hyperpod_jlab.orchestrators.slurm.watching.batch_log import (
    batch_log_name,
    last_words,
    launcher_end,
    read_end,
)
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_NO_FOLDER = re.compile(r"^slurmstepd-(\S+): error: couldn't chdir to `(.*)': ", re.MULTILINE)
"""What slurmstepd says of a working folder that is not there (src/slurmd/slurmstepd/task.c); it goes on in /tmp."""


@dataclass(frozen=True)
class Ended:
    """A job that has ended: its id, and the nodes that it had as a host list."""

    scheduler_id: str
    nodes: str


def explained(
    word: Observation, bundle: BundleReader, records: RunRecords, job: Ended
) -> Observation:
    """The word on a job that failed; with why, when some launcher of its last attempt never began. Blocking."""
    begun = records.attempts[-1].nodes if records.attempts else ()
    if word.verdict != "FAILED":
        return word
    if len(begun) >= records.head.nodes:
        if all(node.ended_at is not None for node in begun):
            return word  # they say themselves how they ended
        return word.model_copy(update={"reason": launcher_end(bundle, job.scheduler_id)})
    path = bundle.folder / "logs" / batch_log_name(job.scheduler_id)
    if not descent.is_file(path):
        if records.attempts or bundle.partition.root not in path.parents:
            return word
        first = job.nodes or "its first node"
        return _unseen(
            word,
            f"Slurm could not open the run's log on {first}: the storage partition is not mounted there, or its user may not write there",
        )
    blind = {
        found[1]
        for found in _NO_FOLDER.finditer(read_end(path))
        if bundle.folder.name in found[2].split("/")
    }
    if blind:
        names = ", ".join(sorted(blind))
        return _unseen(
            word, f"the run's folder is not there on {names}: is the storage partition mounted?"
        )
    how = launcher_end(bundle, job.scheduler_id)
    last = last_words(bundle, job.scheduler_id)
    reason, code = how if records.attempts else last or how, word.reason_code
    if last is not None and last.startswith(REFUSAL):
        reason, code = refusal(bundle.run_id, last), UNTRUSTED
    return word.model_copy(update={"reason": reason, "reason_code": code})


def _unseen(word: Observation, reason: str) -> Observation:
    return word.model_copy(update={"reason": reason, "reason_code": "partition_missing"})
