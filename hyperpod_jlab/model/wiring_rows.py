"""The steps of a plan for a Studio domain as rows of a table: one value a column, so that they can be sorted and searched."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

RowState = Literal["to-do", "waits", "blocked", "as-wanted", "done", "failed", "not-begun"]
"""How a step is: the first four as the plan has it, the others once it was applied."""


@dataclass(frozen=True)
class StepRow:
    """A step, and what became of it.

    Attributes:
        key: Its number in the plan, from 1.
        target: What it is done to, such as ``profile alice``.
        state: How it is.
        before: What was there.
        after: What is to be there.
        reason: Why it waits, is blocked or failed.
        hint: What to do about a failure.
        restarts: Applications that see it only once they are started anew.
    """

    key: str
    target: str
    state: RowState
    before: str
    after: str
    reason: str | None = None
    hint: str | None = None
    restarts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "restarts": list(self.restarts)}
