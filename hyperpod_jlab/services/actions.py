"""What a user does to a run: whether it fits, and the journal that it is written into."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

from hyperpod_jlab.model.errors import (
    ConflictError,
    HyperpodError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from hyperpod_jlab.model.job_actions import Change
from hyperpod_jlab.model.records import Action, ActionKind
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.orchestrators.protocol import Capabilities, Orchestrator
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.users import current_user

_NEEDED = {"requeue": "running", "change": "waiting or running"}


def actions_of(able: Capabilities) -> tuple[ActionKind, ...]:
    """What can be done to an engine's runs and jobs."""
    offered: dict[ActionKind, bool] = {
        "cancel": True,
        "hold": able.hold,
        "release": able.hold,
        "requeue": able.requeue,
        "change": bool(able.changes),
    }
    return tuple(action for action, is_offered in offered.items() if is_offered)


def check_action(run: Run, action: ActionKind, engine: Orchestrator) -> None:
    """Look whether an action fits the run's state and its engine.

    Raises:
        ConflictError: The action does not fit the run's state.
        UnsupportedError: The engine cannot do it.
    """
    if action not in actions_of(engine.capabilities):
        raise UnsupportedError(f"{engine.kind} clusters cannot {action} a run")
    waits = run.state == "waiting" or bool(run.children.get("waiting"))
    fits = {
        "hold": waits,
        "release": waits,
        "requeue": run.state == "running",
        "change": waits or run.state == "running",
    }
    if not fits.get(action, True):
        raise ConflictError(
            f"{run.run_id} is {run.state}; {action} needs a run that is "
            + _NEEDED.get(action, "waiting"),
            code="wrong_state",
            hint="submit it again with: hpj clone" if run.status.ended else None,
            detail={"state": run.state},
        )


def write_action(
    run: Run, bundle: BundleReader, action: ActionKind, change: Change | None = None
) -> Action | None:
    """Put an action into the run's journal. Blocking. None: there was no room for it, and it is to be done all the same.

    Raises:
        DeniedError: It is another user's run.
        StorageError: The partition does not take it.
    """
    try:
        change = change or Change()
        return bundle.add_action(
            action, current_user(), time_limit=change.time_limit, queue=change.queue
        )
    except StorageError as error:
        # What is to be cancelled may be the very run that fills the partition; the engine can tell its processes all the same.
        if error.code != "storage_full" or action != "cancel" or run.children:
            raise
        return None


async def carry_out(
    run: Run,
    bundle: BundleReader,
    engine: Orchestrator,
    action: ActionKind,
    change: Change | None = None,
) -> None:
    """Write an action into the journal and do it. What is changed is written once the engine has done it: the journal shows how the run is.

    Raises:
        DeniedError: It is another user's run, or the engine refuses this user.
    """
    await asyncio.to_thread(bundle.check_own, action)
    if action == "change":
        await engine.change(bundle, change or Change())
        with contextlib.suppress(StorageError):  # it is changed all the same
            await asyncio.to_thread(write_action, run, bundle, action, change)
    else:
        made = await asyncio.to_thread(write_action, run, bundle, action)
        await _done_or_dropped(getattr(engine, action)(bundle), bundle, made)


async def _done_or_dropped(
    doing: Awaitable[None], bundle: BundleReader, made: Action | None
) -> None:
    """An action that the engine did not do leaves the journal: the run would count as cancelled. Should it be done all the same, the engine's word tells.

    What has no job yet keeps it: nobody is to send that any more.
    """
    try:
        await doing
    except NotFoundError:
        raise
    except HyperpodError:
        if made is not None:
            with contextlib.suppress(StorageError):
                await asyncio.to_thread(bundle.drop_action, made)
        raise
