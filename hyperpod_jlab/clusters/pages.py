"""Pagination cursors as text: the sort key and the identity of a page's last row."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError


def encode(value: Any, identity: str) -> str:
    """The cursor of the page after a row, from the row's sort key and identity."""
    text = json.dumps([value, identity]).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode(cursor: str, is_valid: Callable[[Any], bool], kind: str) -> tuple[Any, str]:
    """The sort key and identity of the row that a page follows.

    Args:
        cursor: The cursor, as a client sent it.
        is_valid: Whether a value is a valid sort key.
        kind: The list, as in "a list of runs".

    Raises:
        InvalidInputError: It is not a cursor of such a list.
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
