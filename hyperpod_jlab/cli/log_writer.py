"""Writing log lines: behind their ranks in a terminal or a pipe, or as JSON. Whole blocks at a time, for logs can be large."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

from hyperpod_jlab.cli.failure import output_error
from hyperpod_jlab.cli.interrupts import uninterrupted
from hyperpod_jlab.cli.log_guard import LogGuard
from hyperpod_jlab.cli.terminal import is_terminal, printable, wants_colour
from hyperpod_jlab.logs.block import LineBlock, LogBatch
from hyperpod_jlab.logs.format import json_line
from hyperpod_jlab.logs.source import Mark
from hyperpod_jlab.logs.stream import Stream

_STDOUT = 1
_AT_ONCE = 4096
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_NODE_COLOUR = 90
_MARK_COLOUR = 31


class LogWriter(Protocol):
    """Writes batches of lines that have a mark before their first block at the most."""

    def write(self, batch: LogBatch, done: Callable[[], None]) -> None:
        """Write a batch, and call `done` once it is written; no Ctrl-C comes in between."""
        ...

    def finish(self) -> None:
        """End the last line."""
        ...


def log_writer(*, as_json: bool) -> LogWriter:
    """The writer for stdout."""
    if as_json:
        return JsonWriter()
    shown = is_terminal(sys.stdout)
    return TextWriter(
        colour=wants_colour(),
        live=shows_progress(),
        aside=not shown,
        guard=LogGuard() if shown else None,
    )


def shows_progress() -> bool:
    """Whether unfinished lines are shown as they grow: on a terminal only."""
    return is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"


def write_bytes(data: bytes, done: Callable[[], None] | None = None) -> None:
    """Write to stdout, past all buffers: after an interrupt nothing is left that somebody must wait for.

    Args:
        data: The bytes.
        done: Called once all are written; no Ctrl-C comes in between.

    Raises:
        BrokenPipeError: Nobody reads any more.
        OutputError: It cannot be written.
    """
    try:
        _write(data, done)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error) from error


def _write(data: bytes, done: Callable[[], None] | None) -> None:
    sys.stdout.flush()
    if not _is_descriptor():
        sys.stdout.write(data.decode("utf-8", "backslashreplace"))
        sys.stdout.flush()
        if done is not None:
            done()
        return
    left = memoryview(data)
    while left:
        # Once a pipe takes anything it takes this much at once, so only the waiting can take long.
        select.select((), (_STDOUT,), ())
        with uninterrupted(), contextlib.suppress(BlockingIOError):
            left = left[os.write(_STDOUT, left[:_AT_ONCE]) :]
            if not left and done is not None:
                done()


def _is_descriptor() -> bool:
    """Whether stdout is the process's own: in a kernel it is a cell's output."""
    try:
        return sys.stdout.fileno() == _STDOUT
    except OSError:
        return False


class JsonWriter:
    """One object a line."""

    def write(self, batch: LogBatch, done: Callable[[], None]) -> None:
        """Write a batch."""
        lines = "\n".join(json_line(line) for line in batch)
        if lines:
            write_bytes(lines.encode("utf-8", "backslashreplace") + b"\n", done)
        else:
            done()

    def finish(self) -> None:
        """Nothing is left open."""


class TextWriter:
    """Lines behind their ranks: ``3|text``, ``node0|text`` for a node's own log, ``2.3|text`` in an array's child 2.

    Args:
        colour: Give each rank (and child) a colour, always the same one.
        live: Redraw lines that are redrawn; otherwise each state is a line.
        aside: Marks go to stderr: what a program reads has the ranks' own lines alone.
        guard: Takes out of the lines what a terminal would take for commands; None gives them as they are.
    """

    def __init__(
        self, *, colour: bool, live: bool, aside: bool, guard: LogGuard | None = None
    ) -> None:
        self._colour = colour
        self._live = live
        self._aside = aside
        self._guard = guard
        self._open: Stream | None = None
        self._prefixes: dict[Stream, str] = {}

    def write(self, batch: LogBatch, done: Callable[[], None]) -> None:
        """Write a batch."""
        parts: list[str] = []
        for block in batch.blocks:
            self._block(block, parts)
        if parts:
            write_bytes("".join(parts).encode("utf-8", "backslashreplace"), done)
        else:
            done()

    def finish(self) -> None:
        """End the last line."""
        if self._open is not None:
            self._open = None
            write_bytes(b"\n")

    def _block(self, block: LineBlock, parts: list[str]) -> None:
        prefix = self._prefix(block)
        if block.mark is not None:
            self._end_line(parts)
            self._mark(block, block.mark, parts)
        texts = block.texts() if self._guard is None else self._guard.texts(block)
        if not texts:
            return
        indices = block.indices()
        if not self._goes_on(block, indices[0], prefix, texts[0], parts):
            self._end_line(parts)
            parts += (prefix, texts[0])
        if _has_pieces(block):
            self._pieces(block, texts, prefix, parts)
        elif len(texts) > 1:
            between = f"\n{prefix}"
            parts += (between, between.join(texts[1:]))
        if block.partial(indices[-1]):
            self._open = block.origin.stream
        else:
            self._open = None
            parts.append("\n")

    def _mark(self, block: LineBlock, mark: Mark, parts: list[str]) -> None:
        text = f"--- {printable(mark.text)} ---"
        if self._aside:
            write_bytes("".join(parts).encode("utf-8", "backslashreplace"))
            parts.clear()
            prefix = block.origin.stream.prefix(block.origin.rank)
            print(
                text if mark.kind == "attempt" else f"{prefix}{text}", file=sys.stderr, flush=True
            )
            return
        shown = f"\x1b[{_MARK_COLOUR}m{text}\x1b[0m" if self._colour else text
        parts.append(f"{shown}\n" if mark.kind == "attempt" else f"{self._prefix(block)}{shown}\n")

    def _pieces(self, block: LineBlock, texts: list[str], prefix: str, parts: list[str]) -> None:
        """Write the pieces behind the first one: those of one line go together again."""
        for (before, index), text in zip(pairwise(block.indices()), texts[1:], strict=True):
            joined = block.continued(index) and index == before + 1
            parts += (text,) if joined else ("\n", prefix, text)

    def _goes_on(
        self, block: LineBlock, index: int, prefix: str, text: str, parts: list[str]
    ) -> bool:
        """Whether the piece goes on with the line that is open; then it is written."""
        if self._open != block.origin.stream or not block.continued(index):
            return False
        if not block.redraws(index):
            parts.append(text)
        elif self._live:
            parts += ("\r\x1b[K", prefix, text)
        else:
            return False
        return True

    def _end_line(self, parts: list[str]) -> None:
        if self._open is not None:
            self._open = None
            parts.append("\n")

    def _prefix(self, block: LineBlock) -> str:
        stream, rank = block.origin.stream, block.origin.rank
        found = self._prefixes.get(stream)
        if found is None:
            found = stream.prefix(rank)
            if self._colour:
                number = rank if stream.child is None or rank is None else rank + stream.child
                code = _NODE_COLOUR if number is None else _COLOURS[number % len(_COLOURS)]
                found = f"\x1b[{code}m{found}\x1b[0m"
            self._prefixes[stream] = found
        return found


def _has_pieces(block: LineBlock) -> bool:
    """Whether a line of the block was cut into several pieces."""
    return len(block.ends) - 1 > block.chunk.data.count(b"\n", block.first, block.end - 1)
