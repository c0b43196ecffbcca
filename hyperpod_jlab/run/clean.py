"""Remove old runs from the storage partition, and code that no run needs.

Removes only runs that have ended and that no live run waits for. One rename hides a bundle before its files are removed, so no reader sees half a run;
the next clean-up removes what an interrupted one left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hyperpod_jlab.core.errors import ConflictError, HyperpodError, NotFoundError, StorageDeniedError
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
    """A run that can be removed; `size` is the size of its own files."""

    run: Run
    size: int


@dataclass(frozen=True)
class KeptRun:
    """An old run that cannot be removed, and why."""

    run_id: str
    reason: str


@dataclass(frozen=True)
class CleanPlan:
    """What a clean-up would remove.

    Attributes:
        runs: Runs that are removed.
        kept: Runs that are old enough but cannot be removed.
        staging: Folders of submits that were interrupted long ago.
        staging_size: Bytes in them.
        code: Number of code files that become unused.
        code_size: Bytes in them.
        secrets: Folders with secrets of ended runs, however recent: they are not read again.
        environments: Environments that no run has used for so long.
        environments_size: Bytes in them.
        younger: Number of runs that ended too recently; counted only if there is nothing to remove.
        younger_size: Bytes in them.
    """

    runs: tuple[OldRun, ...]
    kept: tuple[KeptRun, ...]
    staging: tuple[Path, ...]
    staging_size: int
    code: int
    code_size: int
    secrets: tuple[Path, ...] = ()
    environments: tuple[Path, ...] = ()
    environments_size: int = 0
    younger: int = 0
    younger_size: int = 0

    @property
    def size(self) -> int:
        """All bytes that are freed."""
        sizes = (self.staging_size, self.code_size, self.environments_size)
        return sum(old_run.size for old_run in self.runs) + sum(sizes)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not (self.runs or self.staging or self.code or self.secrets or self.environments)


class Cleaner:
    """Cleans this user's runs on one storage partition."""

    def __init__(self, partition: Partition, runs: Runs) -> None:
        self._partition = partition
        self._runs = runs
        self._store = ContentStore(partition)

    async def plan(self, min_age: float, *, keep_failed: bool = False) -> CleanPlan:
        """Plan a clean-up.

        Args:
            min_age: Only runs that ended this many seconds ago or earlier.
            keep_failed: Keep runs that failed.
        """
        cutoff = time.time() - min_age
        runs = (await self._runs.list(RunFilter())).runs
        needed_by = await asyncio.to_thread(self._dependencies, runs)
        removable, active_ids, blocked, younger = [], [], [], []
        for run in runs:
            if run.state not in ENDED:
                continue
            is_old = (run.status.ended_at or run.created_at) <= cutoff
            if not is_old:
                younger.append(run)
            if not is_old or (keep_failed and run.state == "failed"):
                active_ids.append(run)
            elif not Path(run.bundle).is_relative_to(self._partition.folder):
                blocked.append(KeptRun(run.run_id, "it is in an old layout; run: hpj storage migrate"))
            elif run.run_id in needed_by:
                blocked.append(KeptRun(run.run_id, f"{needed_by[run.run_id]} waits for it"))
            else:
                removable.append(run)
        plan = await asyncio.to_thread(self._measure, removable, blocked)
        live_ids = {run.run_id for run in runs if run.state not in ENDED}
        environments = await asyncio.to_thread(self._unused_environments, cutoff, live_ids)
        extent = Extent()
        for folder in environments:
            await asyncio.to_thread(extent.add, folder)
        plan = replace(plan, environments=environments, environments_size=extent.own)
        plan = replace(plan, secrets=await asyncio.to_thread(_secrets_of, active_ids))
        if not plan.empty or not younger:
            return plan
        found = await asyncio.to_thread(self._measure, younger, [])
        return replace(plan, younger=len(younger), younger_size=found.size)

    async def carry_out(self, plan: CleanPlan) -> list[HyperpodError]:
        """Remove what was planned, except what is in use again; returns the errors."""
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
                with contextlib.suppress(HyperpodError):  # its leftovers on the cluster
                    await self._runs.act(old_run.run.run_id, "cancel", wait=False)
        live_ids = {run.run_id for run in runs if run.state not in ENDED}
        environments = [folder for folder in plan.environments if not live_ids & _users_of(folder).keys()]
        others = (*plan.staging, *plan.secrets, *environments)
        return await asyncio.to_thread(self._remove, removable, others)

    async def delete(self, run_id: str) -> None:
        """Remove one run, and the code that no other run needs.

        Raises:
            NotFoundError: The run does not exist.
            DeniedError: It is another user's run.
            ConflictError: It has not ended, a live run waits for it, it is a child of an array, or it is in an old layout.
            StorageError: Its files cannot be removed.
        """
        run = await self._runs.get(run_id)
        bundle = await asyncio.to_thread(self._runs.bundle, run_id)
        await asyncio.to_thread(bundle.check_own, "delete")
        runs = (await self._runs.list(RunFilter())).runs
        needed_by = await asyncio.to_thread(self._dependencies, runs)
        reason = None
        if run.parent is not None:
            reason = f"it is a part of {run.parent}"
        elif run.state not in ENDED:
            reason = f"it is {run.state}"
        elif not Path(run.bundle).is_relative_to(self._partition.folder):
            reason = "it is in an old layout"
        elif run_id in needed_by:
            reason = f"{needed_by[run_id]} waits for it"
        if reason is not None:
            raise ConflictError(f"{run_id} cannot be deleted: {reason}", code="wrong_state", detail={"run_id": run_id})
        plan = CleanPlan((OldRun(run, 0),), (), (), 0, 0, 0)
        for problem in await self.carry_out(plan):
            raise problem

    def _dependencies(self, runs: tuple[Run, ...]) -> dict[str, str]:
        """Runs that a live run waits for, with the id of that run."""
        needed_by: dict[str, str] = {}
        for run in runs:
            if run.state not in ENDED:
                # A damaged or private run has no readable spec; a run that was just removed needs
                # nothing.
                with contextlib.suppress(DamagedBundleError, NotFoundError, StorageDeniedError):
                    needed_by |= dict.fromkeys(self._runs.bundle(run.run_id).spec().after, run.run_id)
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
                continue  # another clean-up is running
            except HyperpodError as error:
                problems.append(error)
        for entry, status in list(self._store.entries()):
            if status.st_nlink == 1 and (freed.shared[status.st_ino] or _is_unused(status)):
                # A concurrent submit keeps its link; a later one stores the file again.
                try:
                    with storage_errors(entry):
                        descent.unlink(entry)
                except HyperpodError as error:
                    problems.append(error)
        return problems

    def _unused_environments(self, cutoff: float, live_ids: set[str]) -> tuple[Path, ...]:
        """Environments that no live run uses, and that none has begun to use since."""
        folders = []
        with contextlib.suppress(OSError):  # does not exist
            for name in sorted(descent.list_names(self._partition.environments)):
                folder = self._partition.environments / name
                users = _users_of(folder)
                with contextlib.suppress(OSError):  # another clean-up is running
                    newest = max([descent.state(folder).st_mtime, *users.values()])
                    if newest <= cutoff and not live_ids & users.keys():
                        folders.append(folder)
        return tuple(folders)

    def _stale_staging(self) -> Iterator[Path]:
        """This user's staging folders that were not modified for a day."""
        runs = self._partition.runs
        with contextlib.suppress(OSError):  # does not exist
            for shard in sorted(descent.list_names(runs)):
                with contextlib.suppress(OSError):  # another clean-up is running
                    for name in sorted(descent.list_names(runs / shard)):
                        if name.startswith(STAGING) and _is_old(runs / shard / name):
                            yield runs / shard / name


def _secrets_of(runs: list[Run]) -> tuple[Path, ...]:
    """Secrets that ended runs left behind; an interrupted submit still needs its own when it is sent again."""
    folders = (Path(run.bundle) / "secrets" for run in runs if run.status.reason_code != "submit_interrupted")
    return tuple(folder for folder in folders if descent.is_folder(folder))


def _users_of(environment: Path) -> dict[str, float]:
    """The runs that have used an environment, with the time of the start."""
    used = environment / "used"
    try:
        return {name: descent.state(used / name).st_mtime for name in descent.list_names(used)}
    except OSError:  # no run has used it, or another clean-up is running
        return {}


def _is_old(staging: Path) -> bool:
    """Whether a staging folder is this user's and nothing in it changed for a day."""
    try:
        status = descent.state(staging)
    except FileNotFoundError:  # another clean-up is running
        return False
    return status.st_uid == os.getuid() and time.time() - status.st_ctime > _STAGING_AGE


def _is_unused(status: os.stat_result) -> bool:
    """Whether a stored file has been unused long enough that no submit is about to link it: adding or removing a link updates its ctime."""
    return time.time() - status.st_ctime > _CODE_AGE


# --------------------------------------------------------------------------------------------------
# Find runs in the partition's old layout and move them.


@dataclass(frozen=True)
class MigrationPlan:
    """What a migration would do.

    Attributes:
        runs: Runs that can be moved.
        kept: Runs that cannot be moved yet, with the reason.
    """

    runs: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]


async def plan_migration(hyperpod: Hyperpod) -> MigrationPlan:
    """This user's runs in the old layout. A live run stays: its job uses the bundle's old path."""
    run_ids = await asyncio.to_thread(lambda: sorted(runs_in_old_layout(hyperpod.partition)))
    removable, blocked = [], []
    for run_id in run_ids:
        try:
            run = await hyperpod.runs.get(run_id)
        except HyperpodError:  # a damaged one is moved unchanged
            removable.append(run_id)
            continue
        if run.status.ended:
            removable.append(run_id)
        else:
            blocked.append((run_id, f"it is {run.state}; move it after it has ended"))
    return MigrationPlan(tuple(removable), tuple(blocked))


async def carry_out(hyperpod: Hyperpod, plan: MigrationPlan) -> MigrationResult:
    """Carry out a migration.

    Raises:
        StorageError: The new folder cannot be created or is not trustworthy.
    """
    return await asyncio.to_thread(migrate, hyperpod.partition, plan.runs)
