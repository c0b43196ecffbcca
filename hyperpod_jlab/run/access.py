"""Access to the nodes of a running run: its shells, and the check that precedes shells and ports."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hyperpod_jlab.core.errors import ConflictError, DeniedError, HyperpodError
from hyperpod_jlab.engines.protocol import Shell, require
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.run.service import Runs
from hyperpod_jlab.storage.owners import is_own


@dataclass(frozen=True)
class Access:
    """Shells on a run's nodes.

    Attributes:
        run_id: The run.
        reason: Why there are none; None if all is well.
        shells: Commands that open a shell on its nodes, by rank.
    """

    run_id: str
    reason: str | None
    shells: tuple[Shell, ...] = ()


async def read_access(engines: Engines, runs: Runs, run_id: str) -> Access:
    """The shells on a run's nodes now.

    Raises:
        NotFoundError: The run does not exist.
    """
    run = await runs.get(run_id)
    try:
        engine = engines.get(run.cluster)
        shells = require(engine.shells, engine, "have no shells on nodes")
        await check_reachable(runs, run_id)
        bundle = await asyncio.to_thread(runs.bundle, run_id)
        return Access(run_id, None, tuple(await shells.shells(bundle)))
    except HyperpodError as error:
        return Access(run_id, error.message)


async def check_reachable(runs: Runs, run_id: str) -> None:
    """Check that the run is this user's own, and is running.

    Raises:
        NotFoundError: The run does not exist.
        DeniedError: It is another user's run.
        ConflictError: It is not running.
    """
    run = await runs.get(run_id)
    if not is_own(run):
        raise DeniedError(
            f"{run.run_id} belongs to {run.user}; only {run.user} may open its ports and shells",
            code="foreign_run",
            detail={"run_id": run.run_id, "user": run.user, "uid": run.uid},
        )
    if run.status.ended or run.state == "waiting":
        state = f"has ended ({run.state})" if run.status.ended else "is waiting"
        raise ConflictError(
            f"{run.run_id} {state}; ports and shells are available while a run is running",
            code="wrong_state",
            hint=None if run.status.ended else f"see: hpj why {run.run_id}",
            detail={"run_id": run.run_id, "state": run.state},
        )
