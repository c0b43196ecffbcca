"""Long tables by pages: sorted, filtered and cut on the server, from one look at the cluster for all tabs."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar

from pydantic import Field

from hyperpod_jlab.model.cluster import Cluster, Job, Node, Queue
from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.server.requests import RequestModel

FRESH = 1.0
"""Seconds for which all who ask are shown the same look."""

MOST_ROWS = 1000

Row = TypeVar("Row", Cluster, Node, Queue, Job)
Item = TypeVar("Item")

_DIGITS = re.compile(r"(\d+)")
_Key = tuple[Any, ...]


class TableQuery(RequestModel):
    """Which rows of a table."""

    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 200
    """At most this many."""
    cursor: Annotated[str | None, Field(max_length=4096)] = None
    """Go on after an earlier page: its `next`. Sort and filter must be the same."""
    sort: Annotated[str | None, Field(max_length=100)] = None
    """A column, or `-column` for the other way round; rows without a value come last."""
    filter: Annotated[str | None, Field(max_length=1000)] = None
    """Words that must all occur in a row, in upper or lower case."""


@dataclass(frozen=True)
class TablePage:
    """Some rows as plain data, the cursor behind them (None at the end), and how many there are in all pages."""

    rows: list[dict[str, Any]]
    next: str | None
    total: int


class Snapshots:
    """What clusters said last: however many ask within a moment, the cluster is asked once."""

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}

    async def get(self, key: Hashable, look: Callable[[], Awaitable[Item]]) -> Item:
        """What was seen a moment ago, or what a new look shows."""
        at, held = self._held.get(key, (0.0, None))
        if held is None or (held.done() and time.monotonic() - at > FRESH):
            held = asyncio.ensure_future(look())
            self._held[key] = (time.monotonic(), held)
            held.add_done_callback(lambda done: self._seen(key, done))
        # One who goes away takes the look from nobody else.
        found: Item = await asyncio.shield(held)
        return found

    def _seen(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if self._held.get(key, (0.0, None))[1] is done:
            if failed:
                del self._held[key]
            else:
                self._held[key] = (time.monotonic(), done)


def page_of(
    kind: type[Row], rows: Sequence[Row], query: TableQuery, *, name: str, sort: str
) -> TablePage:
    """A page of a table. May take a while.

    Args:
        kind: What the rows are.
        rows: All rows.
        query: Which of them.
        name: The column that names a row.
        sort: The order when none is asked for.

    Raises:
        InvalidInputError: There is no such column, or the cursor is none.
    """
    column, downward = _column(kind, query.sort if query.sort is not None else sort)
    kept = _filtered(rows, query.filter)
    order = sorted(kept, key=lambda row: _natural(getattr(row, name)))
    order.sort(key=lambda row: _value_key(getattr(row, column)), reverse=downward)
    # Whatever the direction, those without a value come last.
    order.sort(key=lambda row: getattr(row, column) is None)
    begin = _begin(order, query, (column, downward, name))
    page = order[begin : begin + query.limit]
    more = begin + len(page) < len(order)
    return TablePage(
        [row.to_dict() for row in page],
        _encode(page[-1], column, name) if more and page else None,
        len(order),
    )


def _column(kind: type[Any], sort: str) -> tuple[str, bool]:
    column = sort.removeprefix("-")
    valid = [field.name for field in fields(kind) if field.name != "detail"]
    if column not in valid:
        raise InvalidInputError(
            f"sort: there is no column '{column[:60]}'",
            hint=nearest_hint(column[:60], valid),
            detail={"field": "sort"},
        )
    return column, sort.startswith("-")


def _filtered(rows: Sequence[Row], text: str | None) -> list[Row]:
    words = (text or "").casefold().split()
    if not words:
        return list(rows)
    return [row for row in rows if _has(row, words)]


def _has(row: Any, words: list[str]) -> bool:
    values = (getattr(row, field) for field in row.__dataclass_fields__ if field != "detail")
    text = " ".join(str(value) for value in values if value is not None).casefold()
    return all(word in text for word in words)


def _natural(value: Any) -> _Key:
    """Names in the order in which people count: node-9 before node-10."""
    parts = _DIGITS.split(str(value).casefold())
    return tuple(
        (1, len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (0, 0, part)
        for part in parts
    )


def _value_key(value: Any) -> _Key:
    if value is None:
        return ()
    if isinstance(value, bool | int | float):
        return ((1, value, ""),)
    if isinstance(value, tuple | list):
        return ((1, len(value), ""), *_natural(" ".join(map(str, value))))
    return _natural(value)


def _begin(order: Sequence[Any], query: TableQuery, how: tuple[str, bool, str]) -> int:
    """Where the page begins: behind the cursor's row, or where it would stand now."""
    if query.cursor is None:
        return 0
    column, downward, name = how
    value, identity = _decode(query.cursor)
    at = (_value_key(value), _natural(identity))
    for index, row in enumerate(order):
        found = getattr(row, column)
        if (found is None) != (value is None):
            behind = found is None
        else:
            key = _value_key(found)
            if key == at[0]:
                behind = _natural(getattr(row, name)) > at[1]
            else:
                behind = (key < at[0]) if downward else (key > at[0])
        if behind:
            return index
    return len(order)


def _encode(row: Any, column: str, name: str) -> str:
    text = json.dumps([getattr(row, column), getattr(row, name)]).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _decode(cursor: str) -> tuple[Any, Any]:
    try:
        value, identity = json.loads(
            base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        )
        if isinstance(value, str | int | float | list | None) and isinstance(identity, str):
            return value, identity
    except (ValueError, TypeError, RecursionError, binascii.Error):
        pass
    raise InvalidInputError(
        "this is no cursor of such a table",
        code="invalid_cursor",
        hint="take it from 'next' of the page before",
        detail={"field": "cursor"},
    )
