"""What faces ask the log service for, and what they get."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from hyperpod_jlab.logs.block import LogBatch
from hyperpod_jlab.model.errors import InvalidInputError

Direction = Literal["forward", "backward"]


class RunLogs(Protocol):
    """What the log service must know of runs; whoever keeps the runs tells it."""

    def records_dir(self, run_id: str) -> Path:
        """The run's ``<records>`` folder (docs/bundle-format.md). May block; NotFoundError when there is no such run."""
        ...

    def processes_per_node(self, run_id: str) -> int:
        """Ranks on each node (1 with the launcher ``none``). May block."""
        ...

    async def is_ended(self, run_id: str) -> bool:
        """Whether the run is in a terminal state, after which no further attempt can start.

        Asked about once a second by each follower, so it must not cost a scheduler call each time.
        """
        ...


@dataclass(frozen=True)
class LogRequest:
    """Which lines of a run somebody wants.

    Attributes:
        run_id: The run, an array (then all its children), or a child of one.
        attempt: Only this attempt; None for all.
        node: Only the node of this rank; None for all.
        ranks: Only these global ranks; None for all.
        node_logs: Whether the nodes' own logs (launcher, setup lines) come too; None: unless ranks are asked for.
        tail: Begin with the last so many lines (of those that match, with `grep`).
        since: Begin with the first lines seen at this Unix time (seconds) or later.
        grep: Only lines in which this regular expression is found.
        ignore_case: Whether upper and lower case are the same to `grep`.
        cursor: Go on from here; `tail` and `since` are then not looked at.
        follow: Go on until the run (or the attempt asked for) has ended.
        collapse: Show of progress bars, which go back with a carriage return, only what they showed last.
        partial: With `follow`, show a line that is not finished after a while as far as it is; else only whole lines.
    """

    run_id: str
    attempt: int | None = None
    node: int | None = None
    ranks: tuple[int, ...] | None = None
    node_logs: bool | None = None
    tail: int | None = None
    since: float | None = None
    grep: str | None = None
    ignore_case: bool = False
    cursor: str | None = None
    follow: bool = False
    collapse: bool = True
    partial: bool = True

    def check(self) -> None:
        """Look for numbers that make no sense.

        Raises:
            InvalidInputError: There is one; the detail names its field.
        """
        numbers = {"attempt": (self.attempt, 1), "node": (self.node, 0), "tail": (self.tail, 0)}
        for field, (number, least) in numbers.items():
            if number is not None and number < least:
                raise _out_of_range(field, number, least)
        for rank in self.ranks or ():
            if rank < 0:
                raise _out_of_range("rank", rank, 0)


@dataclass(frozen=True)
class Page:
    """Some lines of history and the cursors on both sides of them.

    Attributes:
        lines: The lines, in the order in which they are shown.
        before: Page backward from here.
        after: Page forward, or follow, from here.
        at_start: There is nothing before the page.
        at_end: There was nothing after the page when it was read.
    """

    lines: LogBatch
    before: str
    after: str
    at_start: bool
    at_end: bool


@dataclass(frozen=True)
class SearchHit:
    """A line that matches.

    Attributes:
        attempt: Its attempt, from 1.
        node: Its node's name, or ``node-R`` while that is unknown.
        node_rank: Its node's rank.
        rank: Its global rank; None for a node's own log.
        time: When it was first seen (Unix seconds), or None when nobody noted it.
        line: Its text, or 16 KiB of it around the match.
        match: Begin and end of the (first) match in `line`, in characters.
        cursor: A page forward from here begins with the line; a page backward ends before it.
        index: In an array's log the index of the child; None in a run's own log.
    """

    attempt: int
    node: str
    node_rank: int
    rank: int | None
    time: float | None
    line: str
    match: tuple[int, int]
    cursor: str
    index: int | None = None


@dataclass(frozen=True)
class SearchResult:
    """What a search has found.

    Attributes:
        hits: The hits, nearest to where the search began first.
        next: Where to search on, in the same direction; None when all was searched.
        scanned: Bytes that were searched.
    """

    hits: tuple[SearchHit, ...]
    next: str | None
    scanned: int


def check_limit(limit: int) -> None:
    """Look whether a page or a list of hits may have so many lines.

    Raises:
        InvalidInputError: It may not.
    """
    if limit < 1:
        raise _out_of_range("limit", limit, 1)


def _out_of_range(field: str, number: int, least: int) -> InvalidInputError:
    return InvalidInputError(
        f"{field} is {number}, but must be at least {least}", detail={"field": field}
    )
