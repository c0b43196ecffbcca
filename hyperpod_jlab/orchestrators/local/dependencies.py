"""Whether the runs that a run waits for have succeeded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, NotFoundError
from hyperpod_jlab.model.state import Moment, derive
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader


@dataclass(frozen=True)
class Word:
    """Why a run may not start yet; `never` when it never will."""

    reason: str
    never: bool = False


def dependency_word(partition: Partition, after: Sequence[str]) -> Word | None:
    """The first of the runs before this one that has not succeeded, or None when all have."""
    for run_id in after:
        try:
            records = BundleReader(partition, run_id).read()
        except HyperpodError as error:
            away = isinstance(error, NotFoundError) and not _is_there(partition)
            return Word(f"waits for {run_id}: {error.message}", never=not away)
        status = derive(records, Moment(time.time()))
        if status.state in {"failed", "cancelled"}:
            return Word(f"waits for {run_id}, which ended {status.state}", never=True)
        if status.state != "succeeded":
            return Word(f"waits for {run_id} to succeed")
    return None


def _is_there(partition: Partition) -> bool:
    """Whether the partition is mounted: one that is away for a while has no run, and all may come back."""
    return any(descent.is_folder(place.runs) for place in partition.own_places)
