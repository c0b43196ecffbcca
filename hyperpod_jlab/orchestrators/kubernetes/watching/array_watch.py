"""Which tasks of an array are to be looked at: those that have pods now, and those whose end is not known yet. Methods may block."""

from __future__ import annotations

import time
from collections.abc import Mapping

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.model.state import Moment, derive
from hyperpod_jlab.orchestrators.kubernetes.watching.array_tasks import indices_of
from hyperpod_jlab.orchestrators.kubernetes.watching.look import Seen, Where, task_of
from hyperpod_jlab.orchestrators.kubernetes.watching.spool import is_done
from hyperpod_jlab.storage.records import BundleReader


class ArrayWatch:
    """Remembers which tasks are over and done with, so that those of a large array are looked at once.

    Args:
        fetched: Whether what pods say must be fetched; else their launchers write it into the bundle.
    """

    def __init__(self, *, fetched: bool) -> None:
        self._fetched = fetched
        self._settled: dict[str, set[int]] = {}

    def due(
        self, bundle: BundleReader, place: Where, seen: Seen
    ) -> list[tuple[BundleReader, Where]]:
        """The tasks of an array to look at; all others are as their records say, or as the array."""
        tasks, indices = seen.tasks(), indices_of(place.array or "")
        settled = self._settled.setdefault(bundle.run_id, set())
        over: set[int] = set()
        if bundle.is_own:  # nothing is written into another user's
            over = {*tasks.failed, *(tasks.completed if self._fetched else ())} - settled
        records = bundle.read()
        found = []
        for number in sorted(tasks.live | over):
            if number >= len(indices):
                continue
            child = bundle.child(indices[number], records)
            if number in over and self._is_settled(child):
                settled.add(number)
            else:
                found.append((child, task_of(place, indices[number])))
        return found

    def _is_settled(self, child: BundleReader) -> bool:
        if self._fetched and not is_done(child):
            return False
        return derive(child.read(), Moment(time.time(), "alive")).ended


def has_open_task(array: str, words: Mapping[str, Observation]) -> bool:
    """Whether a task of an array has not ended, as far as there are words on them."""
    return any(
        word.state != "ended" for run_id, word in words.items() if run_id.startswith(f"{array}.")
    )
