"""What commands print: JSON, tables, and times."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.cli.terminal import is_terminal, printable, wants_colour
from hyperpod_jlab.model.quantities import format_duration
from hyperpod_jlab.model.run import Run, iso_time

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
}
"""Colours by word; any other word keeps the terminal's own colour."""


@dataclass(frozen=True)
class Table:
    """Rows under titles; cells of the columns named in `coloured` get the colour of their word."""

    titles: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    coloured: frozenset[str] = frozenset({"STATE"})
    empty: str = ""


def print_json(document: Any) -> None:
    """One JSON document on stdout. A character that UTF-8 does not have is written as its JSON escape."""
    print(json.dumps(document, ensure_ascii=False, indent=2 if is_terminal(sys.stdout) else None))


def print_list(name: str, items: Sequence[Mapping[str, Any]], following: str | None) -> None:
    """A list as JSON, with the cursor of what follows."""
    print_json({name: list(items), "next": following})


def print_table(table: Table) -> None:
    """A table on stdout: fitted to a terminal, whole and aligned in a pipe. Without rows, a word on stderr."""
    if not table.rows:
        if table.empty:
            print(table.empty, file=sys.stderr)
        return
    if is_terminal(sys.stdout) or wants_colour():
        _print_rich(table)
    else:
        _print_plain(table)


def _print_plain(table: Table) -> None:
    rows = [list(table.titles), *([printable(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.titles))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _print_rich(table: Table) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, title in enumerate(table.titles):
        # The first column is what the user copies: it is never shortened.
        last = place == len(table.titles) - 1
        shown.add_column(
            title,
            no_wrap=True,
            overflow="fold" if place == 0 else "ellipsis",
            ratio=1 if last else None,
            min_width=max(len(title), *(len(row[0]) for row in table.rows)) if place == 0 else None,
        )
    for row in table.rows:
        shown.add_row(
            *(
                Text(printable(cell), STATE_STYLES.get(cell, "") if title in table.coloured else "")
                for title, cell in zip(table.titles, row, strict=True)
            )
        )
    console = Console(
        file=sys.stdout, highlight=False, no_color=not wants_colour(), force_terminal=wants_colour()
    )
    console.print(shown)


def print_fields(fields: Sequence[tuple[str, str | None]]) -> None:
    """Names and values, one a line; those without a value are left out."""
    kept = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        print(f"{name:<{width}}  {printable(value)}")


def coloured(word: str, text: str | None = None) -> str:
    """A state in its colour, when colours are wanted."""
    codes = {"cyan": 36, "yellow": 33, "blue": 34, "green": 32, "red": 31, "magenta": 35}
    style = STATE_STYLES.get(word)
    shown = word if text is None else text
    return f"\x1b[{codes[style]}m{shown}\x1b[0m" if style and wants_colour() else shown


def moment(seconds: float | None) -> str:
    """A time: how long ago for a person, ISO 8601 in a pipe."""
    if seconds is None:
        return "-"
    if not is_terminal(sys.stdout):
        return iso_time(seconds) or "-"
    ago = time.time() - seconds
    return "now" if ago < 1 else f"{format_duration(ago)} ago"


def elapsed(run: Run) -> str:
    """How long a run has been running, or ran."""
    begin = run.status.started_at
    if begin is None:
        return "-"
    return format_duration(max(0.0, (run.status.ended_at or time.time()) - begin))
