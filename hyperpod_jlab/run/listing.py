"""Filter and page of a list of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.core.run import STATES, Run, State


@dataclass(frozen=True)
class RunPage:
    """A page of runs, and the cursor of the next page (None at the end)."""

    runs: tuple[Run, ...]
    next: str | None = None


@dataclass(frozen=True)
class RunFilter:
    """Which runs to list: this user's own or, with `everyone`, also those of other users of a shared partition.

    Attributes:
        cluster: Only runs of this cluster.
        states: Only runs in one of these states.
        everyone: Include other users' runs.
        notebook: Only runs of the notebook with this absolute path.
        limit: Maximum number of runs.
        cursor: Where the previous page ended.
    """

    cluster: str | None = None
    states: tuple[State, ...] = ()
    everyone: bool = False
    notebook: str | None = None
    limit: int | None = None
    cursor: str | None = None


# --------------------------------------------------------------------------------------------------
# States of runs as users type them.


def check_states(names: Sequence[str]) -> tuple[State, ...]:
    """Parse names of states.

    Raises:
        InvalidInputError: A name is not a state.
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
