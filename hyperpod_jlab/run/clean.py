"""Removing old runs from the storage partition, and code that no run needs any more.

Only runs that have ended go, and none that a live one waits for. A bundle goes out of sight with one rename before anything in it is removed, so nobody
ever sees half a run; what a broken-off clean-up leaves behind is removed by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, StorageDeniedError
from hyperpod_jlab.core.run import ENDED, Run
from hyperpod_jlab.run.listing import RunFilter
from hyperpod_jlab.run.service import Runs
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.bundle import STAGING, hide
from hyperpod_jlab.storage.content import ContentStore
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.migration import MigrationResult, migrate, runs_in_old_layout
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import DamagedBundleError
from hyperpod_jlab.storage.removal import Extent, remove_tree

_STAGING_AGE = 86400.0
_CODE_AGE = 3600.0


@dataclass(frozen=True)
class OldRun:
    """A run that may go; `size` is what its own files take."""

    run: Run
    size: int


@dataclass(frozen=True)
class KeptRun:
    """An old run that has to stay, and why."""

    run_id: str
    reason: str


@dataclass(frozen=True)
class CleanPlan:
    """What a clean-up would remove.

    Attributes:
        runs: Runs that go.
        kept: Runs that are old enough and stay all the same.
        staging: Folders of submits that were broken off long ago.
        staging_size: Bytes in them.
        code: Number of files of code that nobody uses then.
        code_size: Bytes in them.
        secrets: Folders with secrets of runs that have ended, however lately: nobody will read them again.
    """

    runs: tuple[OldRun, ...]
    kept: tuple[KeptRun, ...]
    staging: tuple[Path, ...]
    staging_size: int
    code: int
    code_size: int
    secrets: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """All bytes that are freed."""
        return sum(old_run.size for old_run in self.runs) + self.staging_size + self.code_size

    @property
    def empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not (self.runs or self.staging or self.code or self.secrets)


class Cleaner:
    """Cleans one storage partition, as far as this user's own runs go."""

    def __init__(self, partition: Partition, runs: Runs) -> None:
        self._partition = partition
        self._runs = runs
        self._store = ContentStore(partition)

    async def plan(self, min_age: float, *, keep_failed: bool = False) -> CleanPlan:
        """What would be removed.

        Args:
            min_age: Only runs that ended this many seconds ago or earlier.
            keep_failed: Keep runs that failed.
        """
        cutoff = time.time() - min_age
        runs = (await self._runs.list(RunFilter())).runs
        needed_by = await asyncio.to_thread(self._dependencies, runs)
        removable, active_ids, blocked = [], [], []
        for run in runs:
            if run.state not in ENDED:
                continue
            is_old = (run.status.ended_at or run.created_at) <= cutoff
            if not is_old or (keep_failed and run.state == "failed"):
                active_ids.append(run)
            elif not Path(run.bundle).is_relative_to(self._partition.folder):
                blocked.append(
                    KeptRun(run.run_id, "it is in an old layout; run: hpj storage migrate")
                )
            elif run.run_id in needed_by:
                blocked.append(KeptRun(run.run_id, f"{needed_by[run.run_id]} waits for it"))
            else:
                removable.append(run)
        plan = await asyncio.to_thread(self._measure, removable, blocked)
        return replace(plan, secrets=await asyncio.to_thread(_secrets_of, active_ids))

    async def carry_out(self, plan: CleanPlan) -> list[HyperpodError]:
        """Remove what was planned, less what has come to life meanwhile; returns what could not be removed."""
        runs = (await self._runs.list(RunFilter())).runs
        needed_by = await asyncio.to_thread(self._dependencies, runs)
        ended = {run.run_id for run in runs if run.state in ENDED}
        removable = [
            Path(old_run.run.bundle)
            for old_run in plan.runs
            if old_run.run.run_id in ended and old_run.run.run_id not in needed_by
        ]
        for old_run in plan.runs:
            if old_run.run.status.reason_code == "submit_interrupted":
                with contextlib.suppress(HyperpodError):  # what it left on its cluster
                    await self._runs.act(old_run.run.run_id, "cancel", wait=False)
        return await asyncio.to_thread(self._remove, removable, (*plan.staging, *plan.secrets))

    def _dependencies(self, runs: tuple[Run, ...]) -> dict[str, str]:
        """Runs that a live one waits for, with its id."""
        needed_by: dict[str, str] = {}
        for run in runs:
            if run.state not in ENDED:
                # A damaged or somebody's private one has no spec to look at, and one that was removed meanwhile needs nothing.
                with contextlib.suppress(DamagedBundleError, NotFoundError, StorageDeniedError):
                    needed_by |= dict.fromkeys(
                        self._runs.bundle(run.run_id).spec().after, run.run_id
                    )
        return needed_by

    def _measure(self, removable: list[Run], blocked: list[KeptRun]) -> CleanPlan:
        freed = Extent()
        runs = []
        for run in removable:
            size_before = freed.own
            freed.add(Path(run.bundle))
            runs.append(OldRun(run, freed.own - size_before))
        staging = tuple(self._stale_staging())
        size_now = freed.own
        for folder in staging:
            freed.add(folder)
        files, size = 0, 0
        for _, status in self._store.entries():
            count = freed.shared[status.st_ino]
            if status.st_nlink - count == 1 and (count or _is_unused(status)):
                files += 1
                size += status.st_size
        return CleanPlan(tuple(runs), tuple(blocked), staging, freed.own - size_now, files, size)

    def _remove(self, bundles: list[Path], other_paths: tuple[Path, ...]) -> list[HyperpodError]:
        freed = Extent()
        problems: list[HyperpodError] = []
        for folder in (*bundles, *other_paths):
            try:
                target = hide(folder) if folder in bundles else folder
                freed.add(target)
                with storage_errors(target):
                    remove_tree(target)
            except NotFoundError:
                continue  # another clean-up runs
            except HyperpodError as error:
                problems.append(error)
        for entry, status in list(self._store.entries()):
            if status.st_nlink == 1 and (freed.shared[status.st_ino] or _is_unused(status)):
                # A submit that links it just now keeps its link; a later one puts the file there again.
                try:
                    with storage_errors(entry):
                        descent.unlink(entry)
                except HyperpodError as error:
                    problems.append(error)
        return problems

    def _stale_staging(self) -> Iterator[Path]:
        """Staging folders of our own that nobody has touched for a day."""
        runs = self._partition.runs
        with contextlib.suppress(OSError):  # there are none yet
            for shard in sorted(descent.list_names(runs)):
                with contextlib.suppress(OSError):  # another clean-up runs
                    for name in sorted(descent.list_names(runs / shard)):
                        if name.startswith(STAGING) and _is_old(runs / shard / name):
                            yield runs / shard / name


def _secrets_of(runs: list[Run]) -> tuple[Path, ...]:
    """Secrets that ended runs left behind; those of a broken-off submit are still needed when it is sent again."""
    folders = (
        Path(run.bundle) / "secrets"
        for run in runs
        if run.status.reason_code != "submit_interrupted"
    )
    return tuple(folder for folder in folders if descent.is_folder(folder))


def _is_old(staging: Path) -> bool:
    """Whether a staging folder is this user's, and was touched by nothing for a day."""
    try:
        status = descent.state(staging)
    except FileNotFoundError:  # another clean-up runs
        return False
    return status.st_uid == os.getuid() and time.time() - status.st_ctime > _STAGING_AGE


def _is_unused(status: os.stat_result) -> bool:
    """Whether a stored file has lain unused long enough that no submit is about to use it: a link made or removed counts as a change."""
    return time.time() - status.st_ctime > _CODE_AGE


# --------------------------------------------------------------------------------------------------
# Which runs lie in the old layout of the partition, and moving them.


@dataclass(frozen=True)
class MigrationPlan:
    """What a migration would do.

    Attributes:
        runs: Runs that can be moved.
        kept: Runs that have to stay for now, with the reason.
    """

    runs: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]


async def plan_migration(hyperpod: Hyperpod) -> MigrationPlan:
    """This user's runs in the old layout. One that has not ended stays: its job knows its bundle by the old path."""
    run_ids = await asyncio.to_thread(lambda: sorted(runs_in_old_layout(hyperpod.partition)))
    removable, blocked = [], []
    for run_id in run_ids:
        try:
            run = await hyperpod.runs.get(run_id)
        except HyperpodError:  # a damaged one moves as it is
            removable.append(run_id)
            continue
        if run.status.ended:
            removable.append(run_id)
        else:
            blocked.append((run_id, f"it is {run.state}; move it after it has ended"))
    return MigrationPlan(tuple(removable), tuple(blocked))


async def carry_out(hyperpod: Hyperpod, plan: MigrationPlan) -> MigrationResult:
    """Move what was planned.

    Raises:
        StorageError: The new place cannot be made, or is not to be trusted.
    """
    return await asyncio.to_thread(migrate, hyperpod.partition, plan.runs)
