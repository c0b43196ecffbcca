"""Rows of squeue and sinfo as text that nothing in a field can fake or break.

Field names and letters are stable over all versions, and text is many times cheaper than JSON (research: 0.2 s against 3.3 s at 10,000 jobs). A job's
name or a node's reason may hold anything, newlines and control characters too. So fields that hold free text come last; where there are several, each
of them, like the row, ends with a mark made for that one call, which nobody can know who wrote the text.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

FIELD = "\x1f"
"""Between fields that hold no free text: ASCII's unit separator."""


@dataclass(frozen=True)
class Fields:
    """What a command is asked for: names here and there (man squeue and sinfo, ``-O``), those that hold free text apart."""

    plain: tuple[tuple[str, str], ...]
    free: tuple[tuple[str, str], ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names here, in order."""
        return tuple(here for here, _ in (*self.plain, *self.free))


def new_mark() -> str:
    """A mark that no user of the cluster can know before the call."""
    return f"\x1e{secrets.token_hex(6)}"


def row_format(mark: str, letters: Sequence[str]) -> str:
    """The ``-o`` format for these fields, such as ``%A``, of which the last one alone may hold free text."""
    return FIELD.join([mark, *letters])


def parse_rows(text: str, mark: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a command that was given `row_format`."""
    for row in text.split(mark)[1:]:
        values = row.removesuffix("\n").split(FIELD, len(names))
        if len(values) == len(names) + 1:
            yield dict(zip(names, values[1:], strict=True))


def long_format(mark: str, fields: Fields) -> str:
    """The ``-O`` format for these fields. A colon without a width stands for as much as there is.

    The first field is not looked at: before it stands what a login node may have said before the first row.
    """
    *plain, last = (there for _, there in fields.plain)
    marked = [f"{there}:{mark}" for there in (last, *(there for _, there in fields.free))]
    return ",".join([f"Cluster:{mark}", *(f"{there}:{FIELD}" for there in plain), *marked])


def split_long(text: str, mark: str, fields: Fields) -> Iterator[tuple[str, ...]]:
    """The rows of a command that was given `long_format`, cut at the marks only: the plain fields in one, then each free text."""
    parts = text.split(mark)
    step = 2 + len(fields.free)
    for begin in range(1, len(parts) - step + 1, step):
        yield tuple(parts[begin : begin + step - 1])


def row_values(row: tuple[str, ...], fields: Fields) -> dict[str, str] | None:
    """The values of a row of `split_long` by name; None when it is not whole."""
    values = row[0].split(FIELD)
    if len(values) != len(fields.plain):
        return None
    return dict(zip(fields.names, (*values, *row[1:]), strict=True))


def parse_long(text: str, mark: str, fields: Fields) -> Iterator[dict[str, str]]:
    """The rows of a command that was given `long_format`. One that is not whole is left out: the command was cut off in it."""
    for row in split_long(text, mark, fields):
        values = row_values(row, fields)
        if values is not None:
            yield values
