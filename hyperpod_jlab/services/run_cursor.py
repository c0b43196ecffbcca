"""The cursor of a list of runs: after which run the next page begins."""

from __future__ import annotations

import math

from hyperpod_jlab.services import page_cursor


def encode(created: float, run_id: str) -> str:
    """The cursor of the page after a run."""
    return page_cursor.encode(created, run_id)


def decode(cursor: str | None) -> tuple[float, str] | None:
    """The run that a page comes after, as (created, run_id); None for the first page.

    Raises:
        InvalidInputError: It is no cursor.
    """
    if cursor is None:
        return None
    created, run_id = page_cursor.decode(cursor, math.isfinite, "a list of runs")
    return float(created), run_id
