"""What is left in a run's journal when its engine does not do what was asked, and actions on jobs that are runs or are not."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
from hyperpod_jlab.engines.local.actions import LocalActions
from hyperpod_jlab.engines.local.engine import LocalOrchestrator

from .conftest import Place

REFUSALS = [
    (DeniedError("no"), []),
    (UnreachableError("nobody there"), []),
    (NotFoundError("no such job", code="no_such_job"), ["cancel"]),
]


async def journal(place: Place, run_id: str) -> list[ActionKind]:
    return [one.action for one in place.hyperpod.runs.bundle(run_id).actions()]


@pytest.mark.parametrize(("error", "left"), REFUSALS)
async def test_the_journal_holds_what_was_done(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: HyperpodError, left: list[str]
):
    async def refuse(*_: Any) -> None:
        raise error

    run_id = await place.submit("sleep 60")
    await place.until(run_id, lambda run: run.state == "running")
    monkeypatch.setattr(LocalActions, "act", refuse)
    with pytest.raises(type(error)):
        await place.hyperpod.runs.act(run_id, "cancel")
    assert await journal(place, run_id) == left
    monkeypatch.undo()


async def test_a_change_is_in_the_journal_once_it_was_made(place: Place, monkeypatch: pytest.MonkeyPatch):
    run_id = await place.submit("sleep 60")
    await place.until(run_id, lambda run: run.state == "running")
    with pytest.raises(UnsupportedError):
        await place.hyperpod.runs.act(run_id, "change", Change(queue="long"))
    assert await journal(place, run_id) == []

    failures = [UnreachableError("nobody there")]

    async def do(*_: Any) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(LocalActions, "supported", (*LocalActions.supported, "change"))
    monkeypatch.setattr(LocalActions, "act", do)
    with pytest.raises(UnreachableError):
        await place.hyperpod.runs.act(run_id, "change", Change(queue="long"))
    assert await journal(place, run_id) == []
    run = await place.hyperpod.runs.act(run_id, "change", Change(3600, "long"))
    assert run.queue == "long"
    assert (await place.hyperpod.runs.act(run_id, "change", Change(60))).queue == "long"
    assert await journal(place, run_id) == ["change", "change"]


async def test_jobs_that_are_no_runs_are_the_engines(place: Place, monkeypatch: pytest.MonkeyPatch):
    told: list[tuple[Any, ...]] = []

    class Acting:
        covers_runs = False

        async def act_on_jobs(self, action: ActionKind, jobs: Any, change: Any = None) -> list[JobResult]:
            told.append((action, list(jobs), change))
            return [JobResult(job) for job in jobs]

    monkeypatch.setattr(LocalOrchestrator, "job_actions", Acting())
    results = await place.hyperpod.act_on_jobs("local", "hold", ["7", "8_[1-3]", "-x", "7"])
    assert [(one.scheduler_id, one.error is None) for one in results] == [("7", True), ("8_[1-3]", True), ("-x", False)]
    assert told == [("hold", ["7", "8_[1-3]"], None)]


async def test_a_change_goes_with_its_action_only(place: Place):
    with pytest.raises(InvalidInputError):
        await place.hyperpod.act_on_jobs("local", "change", ["7"])
    with pytest.raises(InvalidInputError):
        await place.hyperpod.act_on_jobs("local", "cancel", ["7"], Change(60))
    with pytest.raises(NotFoundError):
        await place.hyperpod.act_on_jobs("nowhere", "cancel", ["7"])
