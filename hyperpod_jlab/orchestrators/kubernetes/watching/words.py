"""Words on runs as wholes: that one ends, that it is gone, that an array has ended."""

from __future__ import annotations

import contextlib

from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.orchestrators.kubernetes.kinds.conditions import OBSERVER
from hyperpod_jlab.orchestrators.kubernetes.watching.look import Seen, Where
from hyperpod_jlab.storage.records import BundleReader

_SETTLES = 20.0
"""Seconds after a submit in which the API server may not have the job yet."""


def ending(word: Observation, now: float) -> Observation:
    """The word on a run that has ended, while its pods may still say something."""
    return word.model_copy(
        update={
            "time": now,
            "state": "running",
            "verdict": None,
            "exit_code": None,
            "reason": "its last nodes end",
            "reason_code": "ending",
        }
    )


def after(records: RunRecords, word: Observation) -> Observation:
    """A word that is later than all that was said before: the cluster's clock may be behind ours."""
    moment = max([word.time, *(seen.time + 0.001 for seen in records.observations)])
    return word.model_copy(update={"time": moment})


def is_new(records: RunRecords, now: float) -> bool:
    """Whether a run was sent so lately that its job may not be seen yet, or never was."""
    if records.attempts or records.claim is not None:
        return False
    sent = records.submission
    return sent is None or now - sent.submitted_at < _SETTLES


def is_told(records: RunRecords) -> bool:
    """Whether the cluster's word that it ended is written down."""
    return any(
        one.observer == OBSERVER and one.verdict and one.state == "ended"
        for one in records.observations
    )


def array_word(
    bundle: BundleReader, place: Where, seen: Seen, *, is_open: bool
) -> Observation | None:
    """The word on an array as a whole, which has ended once all of its tasks have. Blocking."""
    records = bundle.read()
    if seen.job is None:
        return gone(place, records, seen)
    word = seen.job.observe(seen.time)
    if word.state != "ended":
        return word
    if is_open:
        return ending(word, seen.time)
    with contextlib.suppress(StorageError):
        bundle.add_observation(after(records, word))
    return word


def gone(place: Where, records: RunRecords, seen: Seen) -> Observation | None:
    """The word on a run whose object is not there any more: somebody removed it. None when it was never seen there."""
    if is_told(records) or is_new(records, seen.time):
        return None
    return Observation(
        time=max([seen.time, *(one.time + 0.001 for one in records.observations)]),
        observer=OBSERVER,
        scheduler_id=place.name,
        state="ended",
        verdict="LOST",
        reason=f"its {place.kind.name} {place.name} was removed from the cluster",
        reason_code="lost",
    )
