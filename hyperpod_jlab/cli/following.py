"""Seeing a run through to its end: its logs, its states, and the last word on it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime
from functools import partial

from hyperpod_jlab.cli.failure import RunEndedError
from hyperpod_jlab.cli.invocation import InterruptionError, invocation
from hyperpod_jlab.cli.log_writer import log_writer
from hyperpod_jlab.cli.output import elapsed
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.model.run import FirstError, Run
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.logs import LogRequest
from hyperpod_jlab.storage.presence import GONE

_LONG = 2000
_PATIENCE = 2.0
_LOOK_AGAIN = 1.0


class Reading:
    """How far a run's log was written; what the user is told when Ctrl-C ends it."""

    def __init__(self, request: LogRequest, options: str = "") -> None:
        self.request = request
        self.cursor = request.cursor
        self.written = False
        self._options = options

    def interruption(self) -> InterruptionError:
        """The words for the user."""
        run_id = self.request.run_id
        command = f"hpj logs -f {run_id}{self._options}"
        if self.cursor is not None and len(self.cursor) <= _LONG:
            command += f" --cursor '{self.cursor}'"
        elif self.cursor is not None:  # of thousands of ranks: nobody pastes that
            command += f" --since {datetime.now().astimezone().isoformat(timespec='seconds')}"
        follow = self.request.follow
        return InterruptionError(
            f"interrupted; the run {run_id} goes on" if follow else "interrupted",
            hint=f"come back with: {command}" if follow else None,
            detail={"run_id": run_id, "cursor": self.cursor},
        )


async def write_logs(hyperpod: Hyperpod, reading: Reading) -> None:
    """Write the lines asked for to stdout; with `follow` until the run has ended."""
    writer = log_writer(as_json=invocation().as_json)
    try:
        async with aclosing(hyperpod.logs.lines(reading.request)) as batches:
            async for batch in batches:
                reading.written = reading.written or not batch.empty
                for part in batch.between_marks():
                    writer.write(part, partial(setattr, reading, "cursor", part.after.text()))
    finally:
        writer.finish()


@contextlib.asynccontextmanager
async def told_states(
    hyperpod: Hyperpod, run_id: str, seen: Run | None = None
) -> AsyncIterator[None]:
    """Tell on stderr why the run waits, until it runs, and when its cluster does not answer: on a terminal at once, in a file only after a while.

    Args:
        hyperpod: The services.
        run_id: The run.
        seen: As it was just seen, if it was.
    """
    task = None
    if not invocation().as_json:
        patience = 0.0 if is_terminal(sys.stderr) else _PATIENCE
        task = asyncio.create_task(_tell_states(hyperpod, run_id, patience, seen))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _tell_states(hyperpod: Hyperpod, run_id: str, patience: float, seen: Run | None) -> None:
    silent = seen is not None and is_unreachable(seen)
    if seen is not None and silent:
        _tell_silence(seen)
    await asyncio.sleep(patience)
    told = None
    async with aclosing(_watched(hyperpod, run_id)) as runs:
        async for run in runs:
            words = run.status.reason if run.state == "waiting" else None
            if words is not None and words != told:
                _tell(f"waiting: {printable(words)}")
            told = words
            if is_unreachable(run) and not silent:
                _tell_silence(run)
            elif silent and not is_unreachable(run):
                _tell(f"{run.cluster} answers again")
            silent = is_unreachable(run)


async def _watched(hyperpod: Hyperpod, run_id: str) -> AsyncGenerator[Run, None]:
    """The run each time that it changed, until it has ended, also where its file system goes away and comes back meanwhile."""
    gone = False
    while True:
        try:
            async with aclosing(hyperpod.runs.watch(run_id)) as runs:
                async for run in runs:
                    if gone:
                        gone = False
                        _tell("the storage partition is there again")
                    yield run
        except StorageError as error:
            if error.code != GONE:
                raise
            if not gone:
                _tell(f"{printable(error.message)}; the log goes on when it is")
            gone = True
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            return


def _tell_silence(run: Run) -> None:
    _tell(f"{unreachable_words(run)}; the log goes on when it answers")


def _tell(words: str) -> None:
    print(f"--- {words} ---", file=sys.stderr, flush=True)


def is_unreachable(run: Run) -> bool:
    """Whether nothing can be known of a run at the moment, and maybe nothing of its newest log, because its cluster does not answer."""
    return run.state == "unknown" and run.status.reason_code == "unreachable"


def unreachable_words(run: Run) -> str:
    """That its cluster does not answer, in a run's own words."""
    return printable(run.status.reason or f"{run.cluster} does not answer")


async def see_to_end(hyperpod: Hyperpod, request: LogRequest, *, with_log: bool) -> Run:
    """Wait for a run, telling why it waits; returns it as it is then.

    Args:
        hyperpod: The services.
        request: Its log, to be followed.
        with_log: Whether to write that to stdout meanwhile.
    """
    reading = Reading(request)
    invocation().on_interrupt = reading.interruption
    async with told_states(hyperpod, request.run_id):
        if with_log:
            await write_logs(hyperpod, reading)
        return await hyperpod.runs.wait(request.run_id)


def last_word(run: Run) -> str:
    """One line on how a run ended."""
    text = f"{run.run_id} {run.state}"
    if run.status.started_at is not None:
        text += f" after {elapsed(run)}"
    return f"{text}: {run.status.reason}" if run.status.reason else text


def raise_unless_succeeded(run: Run) -> None:
    """Make the exit code of a run that was waited for.

    Raises:
        RunEndedError: It did not succeed; with the last word on it, and where to look.
    """
    if run.state == "succeeded":
        return
    error = last_error(run)
    raise RunEndedError(
        last_word(run),
        code=f"run_{run.state}",
        hint=_where_to_look(run, error),
        detail={
            "run_id": run.run_id,
            "state": run.state,
            "reason_code": run.status.reason_code,
            "exit_code": run.status.exit_code,
            "first_error": error.to_dict() if error is not None else None,
        },
    )


def last_error(run: Run) -> FirstError | None:
    """The error of the rank that failed first in the run's last attempt."""
    return run.status.attempts[-1].first_error if run.status.attempts else None


def _where_to_look(run: Run, error: FirstError | None) -> str | None:
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
