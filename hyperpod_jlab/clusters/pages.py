"""The cursor of a list that is answered by pages, as text: what the last row of a page is sorted by, and which row that is."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError


def encode(value: Any, identity: str) -> str:
    """The cursor of the page after a row, given what rows are sorted by and what names the row."""
    text = json.dumps([value, identity]).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode(cursor: str, is_valid: Callable[[Any], bool], kind: str) -> tuple[Any, str]:
    """The row that a page comes after: what rows are sorted by, and what names it.

    Args:
        cursor: The cursor, as a client gave it.
        is_valid: Whether rows can be sorted by such a value.
        kind: What is listed, as in "a list of runs".

    Raises:
        InvalidInputError: It is no cursor of such a list.
    """
    try:
        value, identity = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if is_valid(value) and isinstance(identity, str):
            return value, identity
    except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
        pass
    raise InvalidInputError(
        f"invalid cursor for {kind}",
        code="invalid_cursor",
        hint="use the value of 'next' of the previous page",
        detail={"field": "cursor"},
    )
