"""Follow a run to its end: its logs, its states, and its result."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from hyperpod_jlab.cli.failure import RunEndedError, output_error
from hyperpod_jlab.cli.interrupts import defer_interrupts
from hyperpod_jlab.cli.invocation import InterruptionError, invocation
from hyperpod_jlab.cli.output import elapsed
from hyperpod_jlab.cli.terminal import is_terminal, printable, wants_colour
from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.text import TerminalLine, is_plain, keep_styles_of_lines
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.logs.lines import json_line
from hyperpod_jlab.storage.mounts import GONE_CODE

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import FirstError, Run
    from hyperpod_jlab.logs.lines import LineBlock, LogBatch
    from hyperpod_jlab.logs.service import LogRequest
    from hyperpod_jlab.logs.source import Mark
    from hyperpod_jlab.logs.stream import Stream
    from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# Log lines for a terminal: only a job's text and colours pass. Nearly free for plain text.


class LogGuard:
    """Sanitizes the blocks of a log in display order."""

    def __init__(self) -> None:
        self._open: dict[Stream, TerminalLine] = {}

    def texts(self, block: LineBlock) -> list[str]:
        """The texts of a block's pieces, sanitized for a terminal."""
        stream, texts = block.origin.stream, block.texts()
        if not texts:
            return texts
        if stream not in self._open and is_plain(block.chunk.data[block.first : block.end]):
            return texts
        if stream not in self._open and _has_whole_lines(block):
            return keep_styles_of_lines(texts)
        return [self._safe_piece(block, index, text) for index, text in zip(block.indices(), texts, strict=True)]

    def _safe_piece(self, block: LineBlock, index: int, text: str) -> str:
        stream, last = block.origin.stream, not block.partial(index)
        line = self._open.pop(stream, None) if block.continued(index) else None
        line = line or TerminalLine()
        if last:
            self._open.pop(stream, None)
        else:
            self._open[stream] = line
        return line.add(text, is_new=block.redraws(index), last=last)


def _has_whole_lines(block: LineBlock) -> bool:
    """Whether no line of the block is in pieces."""
    indices = block.indices()
    newlines = block.chunk.data.count(b"\n", block.first, block.end)
    is_complete = len(block.ends) == newlines and not block.partial(indices[-1])
    return is_complete and not block.continued(indices[0])


# --------------------------------------------------------------------------------------------------
# Write log lines: with their ranks in a terminal or a pipe, or as JSON. Writes whole blocks, since
# logs can be large.

_STDOUT = 1
_BATCH_SIZE = 4096
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_NODE_COLOUR = 90
_MARK_COLOUR = 31


class LogWriter(Protocol):
    """Writes batches of lines with at most one mark, before their first block."""

    def write(self, batch: LogBatch, on_written: Callable[[], None]) -> None:
        """Write a batch, then call `on_written`; Ctrl-C is deferred in between."""
        ...

    def finish(self) -> None:
        """End the last line."""
        ...


def log_writer(*, as_json: bool) -> LogWriter:
    """The writer for stdout."""
    if as_json:
        return JsonWriter()
    on_terminal = is_terminal(sys.stdout)
    return TextWriter(
        colour=wants_colour(),
        live=shows_progress(),
        prefixed=not on_terminal,
        guard=LogGuard() if on_terminal else None,
    )


def shows_progress() -> bool:
    """Whether unfinished lines are redrawn: on a terminal only."""
    return is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"


def write_bytes(data: bytes, on_written: Callable[[], None] | None = None) -> None:
    """Write to stdout, unbuffered: after an interrupt no data is left to wait for.

    Args:
        data: The bytes.
        on_written: Called once all are written; Ctrl-C is deferred in between.

    Raises:
        BrokenPipeError: The reader has closed the pipe.
        OutputError: The write failed.
    """
    try:
        _write(data, on_written)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error) from error


def _write(data: bytes, on_written: Callable[[], None] | None) -> None:
    sys.stdout.flush()
    if not _is_descriptor():
        sys.stdout.write(data.decode("utf-8", "backslashreplace"))
        sys.stdout.flush()
        if on_written is not None:
            on_written()
        return
    remaining = memoryview(data)
    while remaining:
        # A writable pipe accepts this much at once, so only the poll can block for long.
        select.select((), (_STDOUT,), ())
        with defer_interrupts(), contextlib.suppress(BlockingIOError):
            remaining = remaining[os.write(_STDOUT, remaining[:_BATCH_SIZE]) :]
            if not remaining and on_written is not None:
                on_written()


def _is_descriptor() -> bool:
    """Whether stdout is the process's own; in a kernel it is a cell's output."""
    try:
        return sys.stdout.fileno() == _STDOUT
    except OSError:
        return False


class JsonWriter:
    """Writes one JSON object per line."""

    def write(self, batch: LogBatch, on_written: Callable[[], None]) -> None:
        """Write a batch."""
        lines = "\n".join(json_line(line) for line in batch)
        if lines:
            write_bytes(lines.encode("utf-8", "backslashreplace") + b"\n", on_written)
        else:
            on_written()

    def finish(self) -> None:
        """Nothing to finish."""


class TextWriter:
    """Writes lines after their ranks: ``3|text``, ``node0|text`` for a node's own log, ``2.3|text`` for an array's child 2.

    Args:
        colour: Give each rank (and child) a stable colour.
        live: Redraw lines that are redrawn; otherwise print each state as a line.
        prefixed: Print marks to stderr, so that a program only reads the ranks' lines.
        guard: Removes terminal control sequences from lines; None prints them unchanged.
    """

    def __init__(self, *, colour: bool, live: bool, prefixed: bool, guard: LogGuard | None = None) -> None:
        self._colour = colour
        self._live = live
        self._prefixed = prefixed
        self._guard = guard
        self._open: Stream | None = None
        self._prefixes: dict[Stream, str] = {}

    def write(self, batch: LogBatch, on_written: Callable[[], None]) -> None:
        """Write a batch."""
        parts: list[str] = []
        for block in batch.blocks:
            self._block(block, parts)
        if parts:
            write_bytes("".join(parts).encode("utf-8", "backslashreplace"), on_written)
        else:
            on_written()

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
        if not self._continues_line(block, indices[0], prefix, texts[0], parts):
            self._end_line(parts)
            parts += (prefix, texts[0])
        if _has_pieces(block):
            self._pieces(block, texts, prefix, parts)
        elif len(texts) > 1:
            separator = f"\n{prefix}"
            parts += (separator, separator.join(texts[1:]))
        if block.partial(indices[-1]):
            self._open = block.origin.stream
        else:
            self._open = None
            parts.append("\n")

    def _mark(self, block: LineBlock, log_mark: Mark, parts: list[str]) -> None:
        text = f"--- {printable(log_mark.text)} ---"
        if self._prefixed:
            write_bytes("".join(parts).encode("utf-8", "backslashreplace"))
            parts.clear()
            prefix = block.origin.stream.prefix(block.origin.rank)
            print(text if log_mark.kind == "attempt" else f"{prefix}{text}", file=sys.stderr, flush=True)
            return
        mark_text = f"\x1b[{_MARK_COLOUR}m{text}\x1b[0m" if self._colour else text
        parts.append(f"{mark_text}\n" if log_mark.kind == "attempt" else f"{self._prefix(block)}{mark_text}\n")

    def _pieces(self, block: LineBlock, texts: list[str], prefix: str, parts: list[str]) -> None:
        """Write the pieces after the first one; pieces of one line are joined again."""
        for (previous, index), text in zip(pairwise(block.indices()), texts[1:], strict=True):
            joined = block.continued(index) and index == previous + 1
            parts += (text,) if joined else ("\n", prefix, text)

    def _continues_line(self, block: LineBlock, index: int, prefix: str, text: str, parts: list[str]) -> bool:
        """Whether the piece continues the open line; then it is written."""
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
        prefix = self._prefixes.get(stream)
        if prefix is None:
            prefix = stream.prefix(rank)
            if self._colour:
                number = rank if stream.child is None or rank is None else rank + stream.child
                code = _NODE_COLOUR if number is None else _COLOURS[number % len(_COLOURS)]
                prefix = f"\x1b[{code}m{prefix}\x1b[0m"
            self._prefixes[stream] = prefix
        return prefix


def _has_pieces(block: LineBlock) -> bool:
    """Whether a line of the block was cut into several pieces."""
    return len(block.ends) - 1 > block.chunk.data.count(b"\n", block.first, block.end - 1)


_MAX_PREFIX_CACHE = 2000
_TIMEOUT = 2.0
_RETRY_S = 1.0


class Reading:
    """The position in a run's log, and the message when Ctrl-C ends it."""

    def __init__(self, request: LogRequest, options: str = "") -> None:
        self.request = request
        self.cursor = request.cursor
        self.written = False
        self._options = options

    def interruption(self) -> InterruptionError:
        run_id = self.request.run_id
        command = f"hpj logs -f {run_id}{self._options}"
        if self.cursor is not None and len(self.cursor) <= _MAX_PREFIX_CACHE:
            command += f" --cursor '{self.cursor}'"
        elif self.cursor is not None:  # thousands of ranks are too long to paste
            command += f" --since {datetime.now().astimezone().isoformat(timespec='seconds')}"
        follow = self.request.follow
        return InterruptionError(
            f"interrupted; the run {run_id} continues" if follow else "interrupted",
            hint=f"continue with: {command}" if follow else None,
            detail={"run_id": run_id, "cursor": self.cursor},
        )


async def write_logs(hyperpod: Hyperpod, writer_state: Reading) -> None:
    """Write the requested lines to stdout; with `follow` until the run has ended."""
    writer = log_writer(as_json=invocation().as_json)
    try:
        async with aclosing(hyperpod.logs.lines(writer_state.request)) as batches:
            async for batch in batches:
                writer_state.written = writer_state.written or not batch.empty
                for part in batch.split_at_marks():
                    writer.write(part, partial(setattr, writer_state, "cursor", part.end_position.text()))
    finally:
        writer.finish()


@contextlib.asynccontextmanager
async def reporting_states(hyperpod: Hyperpod, run_id: str, last_run: Run | None = None) -> AsyncIterator[None]:
    """Report on stderr why the run waits, until it runs, and when its cluster does not answer: at once on a terminal, after a delay in a file.

    Args:
        hyperpod: The services.
        run_id: The run.
        last_run: Its last known state, if any.
    """
    task = None
    if not invocation().as_json:
        delay_s = 0.0 if is_terminal(sys.stderr) else _TIMEOUT
        task = asyncio.create_task(_report_states(hyperpod, run_id, delay_s, last_run))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _report_states(hyperpod: Hyperpod, run_id: str, delay_s: float, last_run: Run | None) -> None:
    was_silent = last_run is not None and is_unreachable(last_run)
    if last_run is not None and was_silent:
        _report_unreachable(last_run)
    await asyncio.sleep(delay_s)
    last_message = None
    async with aclosing(_watch_run(hyperpod, run_id)) as runs:
        async for run in runs:
            message = run.status.reason if run.state == "waiting" else None
            if message is not None and message != last_message:
                _report(printable(message if message.startswith("waiting") else f"waiting: {message}"))
            last_message = message
            if is_unreachable(run) and not was_silent:
                _report_unreachable(run)
            elif was_silent and not is_unreachable(run):
                _report(f"{run.cluster} responds again")
            was_silent = is_unreachable(run)


async def _watch_run(hyperpod: Hyperpod, run_id: str) -> AsyncGenerator[Run, None]:
    """Yield the run on each change until it has ended, even if its file system is temporarily unmounted."""
    was_lost = False
    while True:
        try:
            async with aclosing(hyperpod.runs.watch(run_id)) as runs:
                async for run in runs:
                    if was_lost:
                        was_lost = False
                        _report("the storage partition is available again")
                    yield run
        except StorageError as error:
            if error.code != GONE_CODE:
                raise
            if not was_lost:
                _report(f"{printable(error.message)}; the log continues when it is available")
            was_lost = True
            await asyncio.sleep(_RETRY_S)
        else:
            return


def _report_unreachable(run: Run) -> None:
    _report(f"{unreachable_text(run)}; the log continues when it responds")


def _report(message: str) -> None:
    print(f"--- {message} ---", file=sys.stderr, flush=True)


def is_unreachable(run: Run) -> bool:
    """Whether a run's state, and possibly its newest log, is unknown because its cluster does not answer."""
    return run.state == "unknown" and run.status.reason_code == "unreachable"


def unreachable_text(run: Run) -> str:
    """The message that its cluster does not answer."""
    return printable(run.status.reason or f"{run.cluster} does not respond")


async def wait_for_end(hyperpod: Hyperpod, request: LogRequest, *, with_log: bool) -> Run:
    """Wait for a run, reporting why it waits; returns its final state.

    Args:
        hyperpod: The services.
        request: Its log, to be followed.
        with_log: Whether to write the log to stdout.
    """
    writer_state = Reading(request)
    invocation().on_interrupt = writer_state.interruption
    async with reporting_states(hyperpod, request.run_id):
        if with_log:
            await write_logs(hyperpod, writer_state)
        return await hyperpod.runs.wait(request.run_id)


def end_text(run: Run) -> str:
    """One line on how a run ended."""
    text = f"{run.run_id} {run.state}"
    if run.status.started_at is not None:
        text += f" after {elapsed(run)}"
    return f"{text}: {run.status.reason}" if run.status.reason else text


def raise_unless_succeeded(run: Run) -> None:
    """Raise if an awaited run did not succeed, which sets the exit code.

    Raises:
        RunEndedError: It did not succeed; with the reason, and where to look.
    """
    if run.state == "succeeded":
        return
    error = last_error(run)
    raise RunEndedError(
        end_text(run),
        code=f"run_{run.state}",
        hint=_logs_hint(run, error),
        detail={
            "run_id": run.run_id,
            "state": run.state,
            "reason_code": run.status.reason_code,
            "exit_code": run.status.exit_code,
            "first_error": to_plain(error) if error is not None else None,
        },
    )


def last_error(run: Run) -> FirstError | None:
    """The error of the rank that failed first in the run's last attempt."""
    return run.status.attempts[-1].first_error if run.status.attempts else None


def _logs_hint(run: Run, error: FirstError | None) -> str | None:
    if run.state == "cancelled":
        return None
    if run.children:
        return f"see its children: hpj show {run.run_id}"
    if error is None:
        return f"see: hpj logs {run.run_id}"
    attempts = run.status.attempts
    option = f" --attempt {attempts[-1].number}" if len(attempts) > 1 else ""
    logs = f"hpj logs {run.run_id} --rank {error.rank}{option} --tail 50"
    return f"rank {error.rank} failed first; its traceback: hpj show {run.run_id}, or: {logs}"
