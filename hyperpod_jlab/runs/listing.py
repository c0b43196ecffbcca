"""Which runs are listed, and a page of them."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.core.run import Run, State


@dataclass(frozen=True)
class Listing:
    """A page of runs, and the cursor of the next one (None at the end)."""

    runs: tuple[Run, ...]
    next: str | None = None


@dataclass(frozen=True)
class Wanted:
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
