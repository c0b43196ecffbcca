"""Command output: JSON, tables, and times."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.terminal import is_terminal, printable, wants_colour
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.quantities import format_duration
from hyperpod_jlab.core.text import terminal_json
from hyperpod_jlab.core.wire import iso_time, to_plain

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import Run

STATE_STYLES = {
    "submitting": "cyan",
    "waiting": "yellow",
    "running": "blue",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "magenta",
    "unknown": "red",
    "up": "green",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
    "unreachable": "red",
    "down": "red",
    "drained": "red",
    "failing": "red",
    "misconfigured": "red",
    "not-answering": "red",
    "in-service": "green",
    "degraded": "red",
    "rolling-back": "red",
    "creating": "yellow",
    "deleting": "yellow",
    "ending": "yellow",
    "updating": "yellow",
    "updating-software": "yellow",
    "deep-health-check": "yellow",
    "draining": "yellow",
    "held": "yellow",
    "maintenance": "yellow",
    "rebooting": "yellow",
    "starting": "yellow",
    "suspended": "yellow",
}
"""Colours by state; any other text keeps the terminal's own colour."""

_CODES = {"cyan": 36, "yellow": 33, "blue": 34, "green": 32, "red": 31, "magenta": 35}
_GAP = "  "
_MIN_LAST = 24
"""Width for which other columns give way to the last one."""


@dataclass(frozen=True)
class Table:
    """Rows under titles.

    Attributes:
        colour_state: Cells of these columns get the colour of their state.
        empty: The message if there are no rows.
        narrow: What gives way to the last column on a narrow terminal, in this order: a column and the width that it keeps; 0: it is left out.
    """

    titles: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    colour_state: frozenset[str] = frozenset({"STATE"})
    empty: str = ""
    narrow: tuple[tuple[str, int], ...] = ()


def print_json(document: Any) -> None:
    """Print one JSON document on stdout, of plain data and of classes with a wire format. A character that UTF-8 cannot encode is written as its JSON escape."""
    for_terminal = is_terminal(sys.stdout)
    indent = 2 if for_terminal else None
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=to_plain)
    print(terminal_json(text) if for_terminal else text)


def print_list(name: str, items: Sequence[object], following: str | None, notes: Sequence[str] = ()) -> None:
    """Print a list as JSON, with the next cursor and notes."""
    extra = {"notes": list(notes)} if notes else {}
    print_json({name: list(items), "next": following, **extra})


def print_table(table: Table) -> None:
    """Print a table on stdout: cut to a terminal's width, complete in a pipe. Without rows, a message on stderr."""
    if not table.rows:
        if table.empty:
            print(table.empty, file=sys.stderr)
        return
    max_width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    rows = [list(table.titles), *([printable(cell) for cell in row] for row in table.rows)]
    widths = _widths(rows)
    if max_width is not None:
        for title, width in table.narrow:
            if sum(widths[:-1]) + len(_GAP) * (len(widths) - 1) + min(widths[-1], _MIN_LAST) <= max_width:
                break
            if title in rows[0]:
                rows = _narrowed(rows, rows[0].index(title), width)
                widths = _widths(rows)
    titles = rows[0]
    for number, row in enumerate(rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        line = _GAP.join(cells).rstrip()
        if max_width is not None:
            line = _cut(line, max_width)
        print(_paint(line, row, widths, titles, table.colour_state) if number else _bold(line))


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _narrowed(rows: Sequence[list[str]], column: int, width: int) -> list[list[str]]:
    """The rows with a column cut to a width; without it if that is 0."""
    if width == 0:
        return [row[:column] + row[column + 1 :] for row in rows]
    return [[*row[:column], _cut(row[column], max(width, len(rows[0][column]))), *row[column + 1 :]] for row in rows]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "\u2026"


def _paint(
    line: str, row: Sequence[str], widths: Sequence[int], titles: Sequence[str], coloured: Collection[str]
) -> str:
    """Colour the cells of the coloured columns, in the visible part of the line."""
    for column in reversed(range(len(row))):
        if titles[column] in coloured:
            begin = sum(widths[:column]) + len(_GAP) * column
            end = min(begin + len(row[column]), len(line))
            state = line[begin:end]
            line = line[:begin] + colour_state(row[column], state) + line[end:]
    return line


def _bold(line: str) -> str:
    return f"\x1b[1m{line}\x1b[0m" if wants_colour() else line


def print_fields(fields: Sequence[tuple[str, str | None]]) -> None:
    """Print names and values, one per line; omits those without a value."""
    filled = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in filled), default=0)
    for name, value in filled:
        print(f"{name:<{width}}  {printable(value)}")


def colour_state(state: str, text: str | None = None) -> str:
    """A state in its colour, if colours are enabled."""
    style = STATE_STYLES.get(state)
    content = state if text is None else text
    return f"\x1b[{_CODES[style]}m{content}\x1b[0m" if style and content and wants_colour() else content


def format_moment(seconds: float | None) -> str:
    """Format a time: how long ago for a person, ISO 8601 in a pipe."""
    if seconds is None:
        return "-"
    if not is_terminal(sys.stdout):
        return iso_time(seconds) or "-"
    age_s = time.time() - seconds
    return "now" if age_s < 1 else f"{format_duration(age_s)} ago"


def elapsed(run: Run) -> str:
    """How long a run has been running, or ran."""
    begin = run.status.started_at
    if begin is None:
        return "-"
    return format_duration(max(0.0, (run.status.ended_at or time.time()) - begin))


# --------------------------------------------------------------------------------------------------
# Lists of a command: as a table or as JSON, in pages.

Item = TypeVar("Item")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def page_options(function: Decorated, default: str = "all") -> Decorated:
    """Add ``--limit`` and ``--cursor`` to a command that lists.

    Args:
        function: The command.
        default: How many it shows without a limit.
    """
    function = click.option(
        "--cursor", metavar="CURSOR", help="Continue after an earlier page: the value of 'next' in its JSON output."
    )(function)
    return click.option(
        "--limit", type=click.IntRange(min=1), metavar="N", help=f"Show at most this many. Default: {default}."
    )(function)


def show_list(
    name: str,
    titles: tuple[str, ...],
    items: Sequence[Item],
    row: Callable[[Item], Sequence[str]],
    page: tuple[int | None, str | None],
    narrow: tuple[tuple[str, int], ...] = (),
) -> None:
    """Print a page of a list.

    Args:
        name: The plural name of the items: the name of the list in JSON.
        titles: Titles of the table's columns.
        items: All items; notes on them go to stderr, or into the JSON.
        row: Formats an item's cells.
        page: The given limit and cursor.
        narrow: What gives way on a narrow terminal (see `Table`).
    """
    from hyperpod_jlab.core.cluster import notes_of

    page_items, following = _page(items, *page)
    if invocation().as_json:
        print_list(name, page_items, following, notes_of(items))
    else:
        rows = [row(item) for item in page_items]
        print_table(without_empty(Table(titles, rows, empty=f"no {name}", narrow=narrow)))
        print_notes(notes_of(items))


def print_notes(notes: Iterable[str]) -> None:
    """Print notes for a person, next to a table."""
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def without_empty(table: Table) -> Table:
    """The table, without empty columns for a person; scripts get all columns in fixed positions."""
    if not is_terminal(sys.stdout):
        return table
    columns = [index for index in range(len(table.titles)) if any(row[index] not in {"-", ""} for row in table.rows)]
    return replace(
        table,
        titles=tuple(table.titles[index] for index in columns),
        rows=[[row[index] for index in columns] for row in table.rows],
    )


def _page(items: Sequence[Item], limit: int | None, cursor: str | None) -> tuple[Sequence[Item], str | None]:
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInputError(
            "--cursor: invalid cursor for this list",
            code="invalid_cursor",
            hint="use the value of 'next' of the previous page",
            detail={"field": "cursor"},
        )
    begin = int(cursor or 0)
    end = len(items) if limit is None else begin + limit
    return items[begin:end], str(end) if end < len(items) else None
