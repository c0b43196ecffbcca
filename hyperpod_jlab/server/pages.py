"""Pagination of long tables: sorted, filtered and cut on the server, from one shared snapshot of the cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import Field

from hyperpod_jlab.clusters import pages as page_cursor
from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, nearest_hint
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_ROWS = 1000

Row = TypeVar("Row", bound="DataclassInstance")

_DIGITS = re.compile(r"(\d+)")
_SCALARS = (bool, int, float)
_UNSEARCHED_TYPES = (bool, float)
_LISTS = (tuple, list)
_Key = tuple[Any, ...]

_MAX_KEY_LENGTH = 200


class TableQuery(RequestModel):
    """Which rows of a table."""

    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 200
    """Maximum number of rows."""
    cursor: Annotated[str | None, Field(max_length=4096)] = None
    """Continue after an earlier page: its `next`. Sort and filter must be the same."""
    sort: Annotated[str | None, Field(max_length=100)] = None
    """A column, or `-column` for descending order; rows without a value come last."""
    filter: Annotated[str | None, Field(max_length=1000)] = None
    """Words that must all occur in a row, ignoring case."""


@dataclass(frozen=True)
class TablePage(Generic[Row]):
    """Some rows, the cursor after them (None at the end), and the total number of rows."""

    rows: list[Row]
    next: str | None
    total: int


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of a table.

    Attributes:
        next: The cursor of the next page; null at the end.
        total: Number of rows in all pages.
    """

    next: str | None
    total: int


@dataclass(frozen=True, kw_only=True)
class AgedPage(Page):
    """A page of data from a cluster.

    Attributes:
        as_of: When the cluster was asked.
        problem: Why there is no newer answer.
        notes: What is hidden from the user, and why.
    """

    as_of: Time | None
    problem: HyperpodError | None
    notes: tuple[str, ...]


@without_collections()
def build_page(kind: type[Row], rows: Sequence[Row], query: TableQuery, *, name: str, sort: str) -> TablePage[Row]:
    """Build a page of a table. May be slow.

    Args:
        kind: The kind of rows.
        rows: All rows.
        query: Which rows.
        name: The column that identifies a row.
        sort: The default order.

    Raises:
        InvalidInputError: The column does not exist, or the cursor is invalid.
    """
    column, is_descending = _column(kind, query.sort if query.sort is not None else sort)
    matching = _filtered(kind, rows, query.filter)
    matching.sort(key=lambda row: _identity_key(getattr(row, name)))
    ordered = [row for row in matching if getattr(row, column) is not None]
    ordered.sort(key=lambda row: _value_key(_brief(getattr(row, column))), reverse=is_descending)
    # Rows without a value come last in both directions.
    ordered += [row for row in matching if getattr(row, column) is None]
    begin = _find_begin(ordered, query, (column, is_descending, name))
    page = ordered[begin : begin + query.limit]
    has_more = begin + len(page) < len(ordered)
    return TablePage(page, _cursor(page[-1], column, name) if has_more and page else None, len(ordered))


def _column(kind: type[Any], sort: str) -> tuple[str, bool]:
    column = sort.removeprefix("-")
    valid = [field.name for field in fields(kind) if field.name != "detail"]
    if column not in valid:
        raise InvalidInputError(
            f"sort: unknown column '{column[:60]}'", hint=nearest_hint(column[:60], valid), detail={"field": "sort"}
        )
    return column, sort.startswith("-")


def _filtered(kind: type[Row], rows: Sequence[Row], text: str | None) -> list[Row]:
    words = (text or "").casefold().split()
    if not words or not rows:
        return list(rows)
    names = [field.name for field in fields(kind) if field.name != "detail"]
    values_of = attrgetter(*names)
    return [row for row in rows if _contains(values_of(row), words)]


def _contains(values: Sequence[Any], search_words: list[str]) -> bool:
    texts = [value if type(value) is str else _to_search_text(value) for value in values if value is not None]
    text = " ".join(texts).casefold()
    return all(word in text for word in search_words)


def _to_search_text(value: Any) -> str:
    """A value as a user sees it in the table, and would search for it."""
    if isinstance(value, _UNSEARCHED_TYPES):
        return ""
    return " ".join(map(str, value)) if isinstance(value, _LISTS) else str(value)


_NULL_KEY = (0, 0, "")


@lru_cache(maxsize=20_000)
def _natural_key(text: str) -> _Key:
    """Natural sort order: node-9 before node-10. Cached, since clients poll tables."""
    if text.isascii() and text.isdigit():  # true for most ids
        digits = text.lstrip("0")
        return _NULL_KEY, (1, len(digits), digits), _NULL_KEY
    parts = _DIGITS.split(text.casefold())
    return tuple((1, len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (0, 0, part) for part in parts)


def _identity_key(name: str) -> _Key:
    """Breaks ties between different names that sort alike, such as gpu-1 and gpu-01."""
    return (_natural_key(name), name)


def _brief(value: Any) -> Any:
    """A short form of a value for sorting, since the cursor contains it: of a list its length and its beginning."""
    if value is None or isinstance(value, _SCALARS):
        return value
    if isinstance(value, tuple | list):
        return [len(value), " ".join(map(str, value))[:_MAX_KEY_LENGTH]]
    return str(value)[:_MAX_KEY_LENGTH]


def _value_key(brief: Any) -> _Key:
    if brief is None:
        return ()
    if isinstance(brief, _SCALARS):
        return ((1, brief, ""),)
    if isinstance(brief, list):
        return ((1, brief[0], ""), *_natural_key(brief[1]))
    return _natural_key(brief)


def _find_begin(ordered: Sequence[Any], query: TableQuery, ordering: tuple[str, bool, str]) -> int:
    """The start of the page: after the cursor's row, or where that row would be now."""
    if query.cursor is None:
        return 0
    column, is_descending, name = ordering
    value, identity = page_cursor.decode(query.cursor, _is_brief, "such a table")
    position = (_value_key(value), _identity_key(identity))
    for index, row in enumerate(ordered):
        brief_value = _brief(getattr(row, column))
        if (brief_value is None) != (value is None):
            is_null = brief_value is None
        else:
            key = _value_key(brief_value)
            if key == position[0]:
                is_null = _identity_key(getattr(row, name)) > position[1]
            else:
                is_null = (key < position[0]) if is_descending else (key > position[0])
        if is_null:
            return index
    return len(ordered)


def _cursor(row: Any, column: str, name: str) -> str:
    return page_cursor.encode(_brief(getattr(row, column)), getattr(row, name))


def _is_brief(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) == 2 and isinstance(value[0], int) and isinstance(value[1], str)
    return isinstance(value, str | int | float | None)
