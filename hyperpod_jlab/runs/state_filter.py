"""States of runs as people type them."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.core.errors import (
    InvalidInputError,
    nearest_hint,
)
from hyperpod_jlab.core.run import STATES, State


def check_states(words: Sequence[str]) -> tuple[State, ...]:
    """States given as words.

    Raises:
        InvalidInputError: One of them is none.
    """
    for word in words:
        if word not in STATES:
            raise InvalidInputError(
                f"'{word[:60]}' is no state",
                code="invalid_state",
                hint=nearest_hint(word, STATES),
                detail={"field": "state"},
            )
    return tuple(state for state in STATES if state in words)
