"""The cursor of a list of runs: after which run the next page begins."""

from __future__ import annotations

import base64
import binascii
import json
import math

from hyperpod_jlab.model.errors import InvalidInputError


def encode(created: float, run_id: str) -> str:
    """The cursor of the page after a run."""
    text = json.dumps([created, run_id]).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode(cursor: str | None) -> tuple[float, str] | None:
    """The run that a page comes after, as (created, run_id); None for the first page.

    Raises:
        InvalidInputError: It is no cursor.
    """
    if cursor is None:
        return None
    try:
        created, run_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if isinstance(run_id, str) and math.isfinite(created):
            return float(created), run_id
    except (ValueError, TypeError, OverflowError, binascii.Error):
        pass
    raise InvalidInputError(
        "this is no cursor of a list of runs",
        code="invalid_cursor",
        hint="take it from 'next' of the page before",
        detail={"field": "cursor"},
    )
