"""What any process on this machine can see of runs whose supervisors have gone.

Nothing is changed here: another machine that sees the bundle, or another container, says what it last heard and leaves it at that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.orchestrators.local.identity import scheduler_id
from hyperpod_jlab.storage.processes import life
from hyperpod_jlab.storage.records import BundleReader

_SILENCE = 30.0  # seconds without a heartbeat before it is mentioned


def observe(bundles: Sequence[BundleReader], now: float) -> dict[str, Observation]:
    """A word on each run that has one, by run id; `now` in Unix seconds."""
    words = {}
    for bundle in bundles:
        with contextlib.suppress(HyperpodError):  # a damaged bundle is told by whoever reads it
            word = observe_one(bundle.run_id, bundle.read(), now)
            if word is not None:
                words[bundle.run_id] = word
    return words


def observe_one(run_id: str, records: RunRecords, now: float) -> Observation | None:
    """A word on one run, or None when its own records say all."""
    owner = records.owner
    told = [word for word in records.observations if word.reason_code != "submit_interrupted"]
    if owner is None or any(word.state == "ended" for word in told):
        return None
    seen = life(owner)
    if seen == "alive":
        return None
    newest = max(told, key=lambda word: word.time, default=None)
    heard = owner.heartbeat or owner.time
    if seen == "dead":
        return Observation(
            # It ended when it was heard last, whenever one looks; and this is the last word.
            time=max(heard, newest.time + 0.001 if newest else 0.0),
            observer="watch",
            scheduler_id=scheduler_id(run_id),
            state="ended",
            verdict="LOST",
            reason="its supervisor was killed",
            reason_code="lost",
        )
    if newest is None or now - heard < _SILENCE:
        return None
    return newest.model_copy(
        update={"time": now, "reason": f"runs on {owner.host}, last heard {now - heard:.0f} s ago"}
    )
