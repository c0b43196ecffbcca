"""What a run waits for before it may start (``after``): the runs before it, as their scheduler knows them, or why it would never start."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.orchestrators.protocol import Orchestrator
from hyperpod_jlab.services.runs import Runs


@dataclass(frozen=True)
class Dependencies:
    """The scheduler's ids of the runs to wait for, and what is wrong with the others."""

    scheduler_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


async def dependencies(after: Sequence[str], engine: Orchestrator, runs: Runs) -> Dependencies:
    """Look at the runs that a new one is to wait for.

    Runs that have succeeded are left out: their scheduler may have forgotten them. Where the engine reads the bundles itself (it waits for no ids),
    the runs must only be there.

    Args:
        after: Ids of runs.
        engine: The engine of the new run.
        runs: The runs.
    """
    ids: list[str] = []
    findings: list[Finding] = []
    for run_id in dict.fromkeys(after):
        try:
            await asyncio.to_thread(runs.bundle, run_id)
            run = await runs.get(run_id) if engine.capabilities.dependencies_by_id else None
        except HyperpodError as error:
            findings.append(_not_there(run_id, error))
            continue
        if run is None or run.state == "succeeded":
            continue
        finding = _why_never(run, engine)
        if finding is not None:
            findings.append(finding)
        elif run.scheduler_id is not None:
            ids.append(run.scheduler_id)
    return Dependencies(tuple(ids), tuple(findings))


def _not_there(run_id: str, error: HyperpodError) -> Finding:
    if error.code == "no_such_run":
        message = f"there is no run {run_id} to wait for"
        return _finding(error.code, message, "see: hpj runs")
    return _finding(error.code, f"{run_id} cannot be waited for: {error.message}", error.hint)


def _why_never(run: Run, engine: Orchestrator) -> Finding | None:
    """Why a run that waits for this one would never start, or could not be told to wait."""
    failed = [state for state in ("failed", "cancelled") if run.children.get(state)]
    if run.cluster != engine.name:
        return _finding(
            "other_cluster",
            f"{run.run_id} is on the cluster {run.cluster}; a run on {engine.name} cannot wait for it",
            f"send both to one cluster, or wait yourself: hpj logs -f {run.run_id}",
        )
    if run.status.ended or failed:
        what = run.state if run.status.ended else f"running, but a task of it is {failed[0]}"
        return _finding(
            "dependency_failed",
            f"{run.run_id} is {what}: a run that waits for it would never start",
            f"send it again first: hpj clone {run.run_id}",
        )
    if run.scheduler_id is None:
        return _finding(
            "not_taken_yet",
            f"{run.run_id} is {run.state}: {engine.name} does not know it yet, so nothing can wait for it",
            f"submit once it waits or runs: hpj show {run.run_id}",
        )
    return None


def _finding(code: str, message: str, hint: str | None) -> Finding:
    return Finding(level="error", code=code, message=message, hint=hint, field="after")
