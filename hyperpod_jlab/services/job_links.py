"""Which jobs of a cluster's queue are runs that can be opened here: a run of the same user's may lie on another storage partition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from hyperpod_jlab.model.cluster import Job, Rows, notes_of
from hyperpod_jlab.model.errors import InvalidInputError, StorageError
from hyperpod_jlab.storage.partition import Partition

_GOOD_FOR = 60.0
"""Seconds for which it is not looked again: a run lies on the partition before the cluster has its job, and stays until it is cleaned."""


_FEW = 50
"""Runs that are looked for one by one."""

_NEVER = (float("-inf"), False)


class JobLinks:
    """Links jobs to the runs of one partition.

    Args:
        partition: The partition.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._known: dict[str, tuple[float, bool]] = {}

    async def linked(self, rows: Sequence[Job]) -> list[Job]:
        """The rows; those of runs that are not here have no run's id."""
        if not any(row.run_id is not None for row in rows):
            return rows if isinstance(rows, list) else list(rows)
        return await asyncio.to_thread(self._linked, rows)

    def _linked(self, rows: Sequence[Job]) -> list[Job]:
        self._look_at_once({row.run_id for row in rows if row.run_id is not None})
        found = [
            row if row.run_id is None or self._is_here(row.run_id) else replace(row, run_id=None)
            for row in rows
        ]
        ids = {row.run_id for row in rows}
        self._known = {run_id: seen for run_id, seen in self._known.items() if run_id in ids}
        return Rows(found, notes_of(rows))

    def _look_at_once(self, run_ids: set[str]) -> None:
        """Where many runs are asked for that are not known yet, list what is there instead of looking for each in each user's folder."""
        now = time.monotonic()
        new = [one for one in run_ids if now - self._known.get(one, _NEVER)[0] > _GOOD_FOR]
        if len(new) <= _FEW or not self._partition.shared:
            return
        try:
            here = self._partition.run_ids()
        except StorageError:  # nobody can look
            here = set()
        for one in new:
            self._known[one] = (now, one.partition(".")[0] in here)

    def _is_here(self, run_id: str) -> bool:
        at, here = self._known.get(run_id, _NEVER)
        if time.monotonic() - at > _GOOD_FOR:
            try:
                here = self._partition.holds(run_id)
            except (InvalidInputError, StorageError):  # no id of a run, or nobody can look
                here = False
            self._known[run_id] = (time.monotonic(), here)
        return here
