"""Which runs are listed, and a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.core.run import STATES, Run, State


@dataclass(frozen=True)
class RunPage:
    """A page of runs, and the cursor of the next one (None at the end)."""

    runs: tuple[Run, ...]
    next: str | None = None


@dataclass(frozen=True)
class RunFilter:
    """Which runs to list: this user's own or, with `everyone`, those of the other users of a shared partition too.

    Attributes:
        cluster: Only those of this cluster.
        states: Only those in one of these states.
        everyone: Those of other users too.
        notebook: Only those that come from the notebook with this absolute path.
        limit: How many at the most.
        cursor: Where the page before ended.
    """

    cluster: str | None = None
    states: tuple[State, ...] = ()
    everyone: bool = False
    notebook: str | None = None
    limit: int | None = None
    cursor: str | None = None


# --------------------------------------------------------------------------------------------------
# States of runs as people type them.


def check_states(names: Sequence[str]) -> tuple[State, ...]:
    """States given as words.

    Raises:
        InvalidInputError: One of them is none.
    """
    for name in names:
        if name not in STATES:
            raise InvalidInputError(
                f"'{name[:60]}' is not a state",
                code="invalid_state",
                hint=nearest_hint(name, STATES),
                detail={"field": "state"},
            )
    return tuple(state for state in STATES if state in names)
