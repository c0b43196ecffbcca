"""The steps of the newest plan for a Studio domain, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from typing_extensions import TypedDict

from hyperpod_jlab.model.wiring_rows import RowState, StepRow
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.tables import TableQuery, page_of

if TYPE_CHECKING:
    from hyperpod_jlab.admin.applying import Result
    from hyperpod_jlab.admin.plan import Step, StepState
    from hyperpod_jlab.services.wirings import Work


class AdminStep(TypedDict):
    """A step, and what became of it. `key` is its number in the plan; `state` is `to-do`, `waits`, `blocked` or `as-wanted`, and once the plan was applied `done`, `failed` or `not-begun`."""

    key: str
    target: str
    state: RowState
    before: str
    after: str
    reason: str | None
    hint: str | None
    restarts: list[str]


class AdminSteps(TypedDict):
    """A page of steps; while `loading` more of them get a result."""

    steps: list[AdminStep]
    next: str | None
    total: int
    loading: bool


class StepsQuery(TableQuery):
    """Which steps."""

    state: RowState | None = None
    """Only those that are so."""


_STATES: Mapping[StepState, RowState] = {
    "done": "as-wanted",
    "to do": "to-do",
    "waits": "waits",
    "blocked": "blocked",
}

_OVER = frozenset({"applied", "stopped", "failed"})


async def list_admin_steps(call: Call, query: StepsQuery) -> AdminSteps:
    """The steps of the newest plan, in their order; none before there is one."""
    from hyperpod_jlab.services.wirings import BUSY

    work = (await call.process.admin()).wirings.last
    rows = [] if work is None else await asyncio.to_thread(_rows, work)
    wanted = [row for row in rows if query.state in {None, row.state}]
    page = await asyncio.to_thread(page_of, StepRow, wanted, query, name="key", sort="key")
    return {
        "steps": cast("list[AdminStep]", page.rows),
        "next": page.next,
        "total": page.total,
        "loading": work is not None and work.state in BUSY,
    }


def _rows(work: Work) -> list[StepRow]:
    if work.planned is None:
        return []
    results = dict(work.results)
    over = work.state in _OVER and bool(results)
    return [
        _row(number, step, results.get(number), over)
        for number, step in enumerate(work.planned.plan.steps)
    ]


def _row(number: int, step: Step, result: Result | None, over: bool) -> StepRow:
    if result is not None:
        step = result.step
    state, reason, hint = _STATES[step.state], step.reason, None
    if result is not None and result.done:
        state = "done"
    elif result is not None and result.error is not None:
        state, reason, hint = "failed", result.error.message, result.error.hint
    elif over and step.state == "to do":
        state = "not-begun"
    return StepRow(
        str(number + 1),
        step.target,
        state,
        step.before,
        step.after,
        reason,
        hint,
        tuple(step.restarts),
    )
