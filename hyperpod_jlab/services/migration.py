"""Which runs lie in the old layout of the partition, and moving them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.storage.migration import Moved, migrate, runs_in_old_layout


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
    found = await asyncio.to_thread(lambda: sorted(runs_in_old_layout(hyperpod.partition)))
    go, kept = [], []
    for run_id in found:
        try:
            run = await hyperpod.runs.get(run_id)
        except HyperpodError:  # a damaged one moves as it is
            go.append(run_id)
            continue
        if run.status.ended:
            go.append(run_id)
        else:
            kept.append((run_id, f"it is {run.state}; move it once it has ended"))
    return MigrationPlan(tuple(go), tuple(kept))


async def carry_out(hyperpod: Hyperpod, plan: MigrationPlan) -> Moved:
    """Move what was planned.

    Raises:
        StorageError: The new place cannot be made, or is not to be trusted.
    """
    return await asyncio.to_thread(migrate, hyperpod.partition, plan.runs)
