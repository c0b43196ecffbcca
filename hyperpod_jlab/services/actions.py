"""What a user does to a run: whether it fits, and the journal that it is written into."""

from __future__ import annotations

from hyperpod_jlab.model.errors import (
    ConflictError,
    DeniedError,
    StorageDeniedError,
    StorageError,
    UnsupportedError,
)
from hyperpod_jlab.model.records import ActionKind
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.orchestrators.protocol import Orchestrator
from hyperpod_jlab.services.user import current_user
from hyperpod_jlab.storage.records import BundleReader


def check_action(run: Run, action: ActionKind, engine: Orchestrator) -> None:
    """Look whether an action fits the run's state and its engine.

    Raises:
        ConflictError: The action does not fit the run's state.
        UnsupportedError: The engine cannot do it.
    """
    able = {"hold": engine.capabilities.hold, "release": engine.capabilities.hold}
    able["requeue"] = engine.capabilities.requeue
    if not able.get(action, True):
        raise UnsupportedError(f"{engine.kind} clusters cannot {action} a run")
    fits = {
        "hold": run.state == "waiting",
        "release": run.state == "waiting",
        "requeue": run.state == "running",
    }
    if not fits.get(action, True):
        raise ConflictError(
            f"{run.run_id} is {run.state}; {action} needs a run that is "
            + ("running" if action == "requeue" else "waiting"),
            code="wrong_state",
            hint="submit it again with: hpj clone" if run.status.ended else None,
            detail={"state": run.state},
        )


def write_action(run: Run, bundle: BundleReader, action: ActionKind) -> None:
    """Put an action into the run's journal. Blocking.

    Raises:
        DeniedError: It is somebody else's run.
        StorageError: The partition does not take it.
    """
    try:
        bundle.add_action(action, current_user())
    except StorageDeniedError as error:
        if run.user != current_user():
            raise DeniedError(
                f"{run.run_id} is {run.user}'s; only {run.user} may {action} it",
                detail={"run_id": run.run_id, "user": run.user},
            ) from error
        raise
    except StorageError as error:
        # What is to be cancelled may be the very run that fills the partition; the engine can tell its processes all the same.
        if error.code != "storage_full" or action != "cancel" or run.children:
            raise
