"""Lists of a command: as a table or as JSON, in pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import click

from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import Table, print_list, print_table
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.model.cluster import notes_of
from hyperpod_jlab.model.errors import InvalidInputError


class _Item(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


Item = TypeVar("Item", bound=_Item)
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def page_options(function: Decorated) -> Decorated:
    """Add ``--limit`` and ``--cursor`` to a command that lists."""
    function = click.option("--cursor", help="Go on after an earlier page: its 'next' in --json.")(
        function
    )
    return click.option(
        "--limit", type=click.IntRange(min=1), help="At most this many. Default: all."
    )(function)


def show_list(
    name: str,
    titles: tuple[str, ...],
    items: Sequence[Item],
    row: Callable[[Item], Sequence[str]],
    page: tuple[int | None, str | None],
) -> None:
    """Print a page of a list.

    Args:
        name: What they are, in the plural: the name of the list in JSON.
        titles: Titles of the table's columns.
        items: All of them; notes on them as a whole go to stderr, or into the JSON.
        row: Makes an item's cells.
        page: The limit and the cursor that were given.
    """
    shown, following = _page(items, *page)
    if invocation().as_json:
        print_list(name, [item.to_dict() for item in shown], following, notes_of(items))
    else:
        print_table(_without_empty(titles, [row(item) for item in shown], f"no {name}"))
        print_notes(notes_of(items))


def print_notes(notes: Iterable[str]) -> None:
    """Print notes for a person, beside what a table says."""
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def _without_empty(titles: tuple[str, ...], rows: list[Sequence[str]], empty: str) -> Table:
    """The table, for a person without columns in which nothing stands; a script finds all of them in their places."""
    kept = [
        at
        for at in range(len(titles))
        if not is_terminal(sys.stdout) or any(row[at] not in {"-", ""} for row in rows)
    ]
    return Table(
        tuple(titles[at] for at in kept), [[row[at] for at in kept] for row in rows], empty=empty
    )


def _page(
    items: Sequence[Item], limit: int | None, cursor: str | None
) -> tuple[Sequence[Item], str | None]:
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInputError(
            "--cursor: this is no cursor of such a list",
            code="invalid_cursor",
            hint="take it from 'next' of the page before",
            detail={"field": "cursor"},
        )
    begin = int(cursor or 0)
    end = len(items) if limit is None else begin + limit
    return items[begin:end], str(end) if end < len(items) else None
