"""Which job a run is."""

from __future__ import annotations

from hyperpod_jlab.model.records import RunRecords


def scheduler_id(records: RunRecords, index: int | None) -> str | None:
    """The id of the job of a run, or of an array's child (``12_3``), as Slurm's commands take it; None when nobody has said it yet.

    The claim names the job that executes; what the submit was told may be a double of it.

    Args:
        records: The run's records.
        index: The child's index, or None.
    """
    if records.claim is not None:
        return records.claim.scheduler_id
    if records.submission is None:
        return None
    sent = records.submission.scheduler_id
    return sent if index is None else f"{sent}_{index}"
