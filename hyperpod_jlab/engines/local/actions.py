"""Actions on runs of this machine: through their journals, which their supervisors read."""

from __future__ import annotations

import asyncio

from hyperpod_jlab.core.cluster import ChangeField
from hyperpod_jlab.core.job_actions import ActionKind, Change
from hyperpod_jlab.engines.local.attempt import end_processes, signal_cancel
from hyperpod_jlab.storage.processes import liveness
from hyperpod_jlab.storage.records import BundleReader


class LocalActions:
    """Actions on runs. A local run has no queue and a fixed time limit, so ``change`` is not supported."""

    supported: tuple[ActionKind, ...] = ("cancel", "hold", "release", "requeue")
    changes: tuple[ChangeField, ...] = ()

    async def act(self, action: ActionKind, bundle: BundleReader, change: Change | None = None) -> None:
        """Do what the supervisor does not do itself when it reads the journal."""
        del change
        if action == "cancel":
            await _cancel(bundle)


async def _cancel(bundle: BundleReader) -> None:
    """The supervisor reads the journal itself; if it is dead, its processes are ended here.

    If the journal could not be written (a full partition), the supervisor gets a signal.
    """
    await asyncio.to_thread(bundle.check_own, "cancel")
    records = await asyncio.to_thread(bundle.read)
    if records.owner is None:
        return
    state = liveness(records.owner)
    if state == "dead":
        grace = bundle.spec().stop_grace
        await asyncio.to_thread(end_processes, bundle.records, grace)
    elif state == "alive" and not any(entry.action == "cancel" for entry in records.actions):
        signal_cancel(records.owner.pid)
