"""`Run`: the handle of a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any

from hyperpod_jlab.api.background import background
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.job_actions import ActionKind, Change
from hyperpod_jlab.core.quantities import parse_duration
from hyperpod_jlab.core.run import Run as RunView
from hyperpod_jlab.core.run import State
from hyperpod_jlab.core.text import terminal_text
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.logs.service import LogLine, LogRequest, check_choice
from hyperpod_jlab.run.services import Hyperpod

if TYPE_CHECKING:
    from hyperpod_jlab.features.mlflow.models import RunMlflow
    from hyperpod_jlab.logs.service import LogBatch
    from hyperpod_jlab.run.cost import RunCost


# --------------------------------------------------------------------------------------------------
# Arguments of a wrong type or out of range: clear errors where Python would raise a TypeError or
# nothing.

_VOWEL_LETTERS = "aeioAEIO"


def kind_of(value: object) -> str:
    """The type of a value, such as ``an int``; None is ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name.startswith(tuple(_VOWEL_LETTERS)) else f"a {name}"


def check_text(value: Any, field: str, expected: str, *, optional: bool = True) -> None:
    """Check that an argument is text.

    Args:
        value: The argument.
        field: Its name.
        expected: What it should be, such as "a run id".
        optional: Whether None is allowed.

    Raises:
        InvalidInputError: It is not.
    """
    if not isinstance(value, str) and not (optional and value is None):
        raise _argument_error(f"{field} must be {expected}, not {kind_of(value)}", field)


def check_flag(value: Any, field: str) -> None:
    """Check that an argument is True or False.

    Raises:
        InvalidInputError: It is not.
    """
    if not isinstance(value, bool):
        raise _argument_error(f"{field} must be True or False, not {kind_of(value)}", field)


def check_number(value: Any, field: str, least: int) -> None:
    """Check that an argument is None or an integer of at least `least`.

    Raises:
        InvalidInputError: It is not.
    """
    if value is None:
        return
    if not _is_whole(value):
        raise _argument_error(f"{field} must be a whole number, not {kind_of(value)}", field)
    if value < least:
        raise _argument_error(f"{field} must be at least {least}, not {value}", field)


def check_seconds(value: Any, field: str) -> None:
    """Check that an argument is None or a number of seconds.

    Raises:
        InvalidInputError: It is not.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _argument_error(f"{field} must be a number of seconds, not {kind_of(value)}", field)


def ranks_of(value: Any) -> tuple[int, ...] | None:
    """The ranks for one rank, several ranks, or None.

    Raises:
        InvalidInputError: It is something else.
    """
    if value is None:
        return None
    several = isinstance(value, Sequence | range | set | frozenset) and not isinstance(value, str)
    ranks = tuple(value) if several else (value,)
    for rank in ranks:
        if not _is_whole(rank):
            raise _argument_error(f"rank must be a whole number or a list of them, not {kind_of(rank)}", "rank")
        check_number(rank, "rank", 0)
    return tuple(int(rank) for rank in ranks)


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _argument_error(message: str, field: str) -> InvalidInputError:
    return InvalidInputError(message, detail={"field": field})


CARD = "application/vnd.hyperpod.run+json"
"""MIME type of a run in a notebook's output: its version, id and name; JupyterLab renders it as the live log."""

_POLL_S = 2.0


class Run:
    """One run. Its state is queried on each access.

    Interrupting a wait, or stopping the kernel, never ends the run; `cancel` does.
    """

    def __init__(self, hyperpod: Hyperpod, run_id: str) -> None:
        self._hyperpod = hyperpod
        self.run_id = run_id

    @property
    def view(self) -> RunView:
        """The run's current details."""
        return background.call(self._hyperpod.runs.get(self.run_id))

    @property
    def state(self) -> State:
        """The run's current state."""
        return self.view.state

    @property
    def bundle(self) -> Path:
        """The run's folder on this machine."""
        return self._hyperpod.runs.bundle(self.run_id).folder

    @property
    def children(self) -> list[Run]:
        """The children of an array; empty for other runs."""
        return [Run(self._hyperpod, child_id) for child_id in self._hyperpod.runs.child_ids(self.run_id)]

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data, as ``hpj show --json`` prints it."""
        data: dict[str, Any] = to_plain(self.view)
        return data

    def metrics(self, *, name: str | Sequence[str] | None = None, rank: int | Sequence[int] | None = None) -> Any:
        """The numbers that the ranks print, so far: loss, learning rate, step time and others.

        Args:
            name: One name or several; default: all.
            rank: One global rank or several; default: all.

        Returns:
            A pandas ``DataFrame`` with the columns ``name``, ``rank``, ``attempt``, ``step``, ``time`` (Unix seconds) and ``value`` if pandas is installed; otherwise a
            list of dictionaries with these keys. A missing step, and a value that is not finite, is None (NaN in pandas).

        Raises:
            NotFoundError: The run does not exist any more.
        """
        names = [name] if isinstance(name, str) else list(name or ())
        for one in names:
            check_text(one, "name", "a name, or a list of names", optional=False)
        ranks = ranks_of(rank) or ()

        async def read() -> list[dict[str, Any]]:
            metrics = await asyncio.to_thread(self._hyperpod.metrics.get, self.run_id)
            await asyncio.to_thread(metrics.refresh)
            return [
                {
                    "name": series.name,
                    "rank": series.rank,
                    "attempt": series.attempt,
                    "step": step,
                    "time": moment,
                    "value": value,
                }
                for series in metrics.read(names, ranks)[0]
                for step, moment, value in series.points
            ]

        rows = background.call(read())
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            return rows
        columns = ["name", "rank", "attempt", "step", "time", "value"]
        return pandas.DataFrame(rows, columns=columns)

    def mlflow(self) -> RunMlflow:
        """What MLflow has of the run: its run there, with parameters and last metrics. Waits at most 2 s for MLflow.

        Raises:
            NotFoundError: The run does not exist any more.
        """
        from hyperpod_jlab.features.mlflow.service import read_mlflow

        return background.call(read_mlflow(self._hyperpod, self.view))

    def notebook(self, rank: int = 0, *, attempt: int | None = None) -> dict[str, Any]:
        """The executed notebook so far: the cells as they were submitted, with what a rank printed and displayed (nbformat 4).

        ``json.dump`` writes it to a file, and ``nbformat.from_dict`` makes a notebook of it. Its outputs are not trusted.

        Args:
            rank: The global rank whose outputs it has.
            attempt: The attempt; default: the newest.

        Raises:
            NotFoundError: The run, rank or attempt does not exist.
            UnsupportedError: The run is not a notebook, or is an array.
        """
        from hyperpod_jlab.features.notebook.service import read_executed_notebook

        check_number(rank, "rank", 0)
        check_number(attempt, "attempt", 1)
        return background.call(read_executed_notebook(self._hyperpod, self.run_id, rank, attempt)).document

    def cost(self) -> RunCost:
        """What the run has cost so far, in all its attempts.

        Raises:
            NotFoundError: The run does not exist.
        """
        from hyperpod_jlab.run.cost import read_run_cost

        return background.call(read_run_cost(self._hyperpod, self.run_id))

    def logs(
        self,
        *,
        rank: int | Sequence[int] | None = None,
        node: int | None = None,
        attempt: int | None = None,
        follow: bool = False,
        tail: int | None = None,
        since: float | str | None = None,
        grep: str | None = None,
        cursor: str | None = None,
    ) -> Logs:
        """The run's log: lines of all ranks merged by time. Iterate over it (with ``for`` or ``async for``) or print it.

        An array's log contains all its children; `LogLine.index` is the child of a line.

        Args:
            rank: One global rank or several; default: all.
            node: Only the ranks of this node.
            attempt: Only this attempt.
            follow: Continue until the run has ended.
            tail: Only this many last lines.
            since: Only lines since then: seconds ago, or text such as "5m".
            grep: Only lines that match this regular expression.
            cursor: Continue from a line's cursor.

        Raises:
            InvalidInputError: An argument is invalid.
            NotFoundError: The rank, node or attempt does not exist; raised during iteration.
        """
        from hyperpod_jlab.logs.service import LogRequest

        check_number(node, "node", 0)
        check_number(attempt, "attempt", 1)
        check_number(tail, "tail", 0)
        check_text(grep, "grep", "a regular expression as text")
        check_text(cursor, "cursor", "a line's cursor")
        request = LogRequest(
            run_id=self.run_id,
            attempt=attempt,
            node=node,
            ranks=ranks_of(rank),
            tail=tail,
            since=parse_since(since),
            grep=grep,
            cursor=cursor,
            follow=follow,
        )
        return Logs(self._hyperpod, request)

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until the run has ended, at most `timeout` seconds; returns the run.

        Raises:
            TimeoutError: It has not ended in time; it keeps running.
        """
        self._ended(timeout)
        return self

    def _ended(self, timeout: float | None) -> RunView:
        """The run once it has ended.

        Raises:
            TimeoutError: It has not ended in time.
        """
        check_seconds(timeout, "timeout")
        limit = None if timeout is None or timeout > TIMEOUT_MAX else timeout
        begin = time.monotonic()
        try:
            return background.call(self._hyperpod.runs.wait(self.run_id), limit)
        except TimeoutError as error:
            if limit is None or time.monotonic() - begin < limit:
                raise  # another timeout
            raise TimeoutError(self._unfinished_text(limit)) from error

    def _unfinished_text(self, limit: float) -> str:
        """The message for a run that has not ended in time."""
        try:
            run = background.call(self._hyperpod.runs.get(self.run_id), _POLL_S)
        except (HyperpodError, TimeoutError):
            return f"{self.run_id} did not end within {limit:g} s"
        reason = f" ({run.status.reason})" if run.status.reason else ""
        return f"{self.run_id} is {run.state}{reason} after {limit:g} s and continues"

    def __await__(self) -> Generator[Any, None, Run]:
        """``await run`` waits as `wait` does, without blocking the event loop."""
        return self._wait_async().__await__()

    async def _wait_async(self) -> Run:
        future = background.start(self._hyperpod.runs.wait(self.run_id))
        await asyncio.wrap_future(future)
        return self

    def result(self, timeout: float | None = None, *, trust: bool = False) -> Any:
        """Wait for a function's run and return the function's result on rank 0, or raise its exception there, with its traceback.

        Args:
            timeout: Maximum seconds to wait.
            trust: Load a pickle that other users could have written.

        Raises:
            TimeoutError: The run has not ended in time.
            ConflictError: The run ended without a result: it was cancelled, lost, or not a function; or another rank than 0 failed.
        """
        from hyperpod_jlab.capture.results import load_result

        view = self._ended(timeout)
        try:
            outcome = load_result(self._hyperpod.runs.records_folder(self.run_id), trust=trust)
        except NotFoundError as error:
            ended = _end_text(view)
            reason = "only a function has a result"
            reason = reason if view.state == "succeeded" else ended
            if view.children:
                first = f'hyperpod_jlab.get("{self.run_id}.0").result()'
                reason = f"the runs of an array have their own results, such as {first}"
            raise ConflictError(
                f"{self.run_id} has no result; {reason}",
                code="no_result",
                hint=f"see its log: hpj logs {self.run_id}",
                detail={"run_id": self.run_id, "state": view.state},
            ) from error
        if view.state != "succeeded":  # rank 0 finished before another rank failed
            raise ConflictError(
                f"rank 0 of {self.run_id} returned, but the run has no result; {_end_text(view)}",
                code="no_result",
                hint=f"see its log: hpj logs {self.run_id}",
                detail={"run_id": self.run_id, "state": view.state},
            )
        return outcome

    def cancel(self) -> Run:
        """Cancel the run, or remove it from the queue."""
        return self._act("cancel")

    def hold(self) -> Run:
        """Keep a waiting run from starting."""
        return self._act("hold")

    def release(self) -> Run:
        """Let a held run start."""
        return self._act("release")

    def requeue(self) -> Run:
        """End the current attempt and requeue the run."""
        return self._act("requeue")

    def change(self, *, time_limit: str | int | None = None, queue: str | None = None) -> Run:
        """Change the time limit (seconds, or a text such as ``2h``; counted from the start) or the queue of a waiting or running run.

        Raises:
            InvalidInputError: The time limit is invalid, or there is nothing to change.
            UnsupportedError: The cluster does not support it.
        """
        check_text(queue, "queue", "a queue's name")
        return self._act("change", Change(_seconds(time_limit), queue))

    def _act(self, action: ActionKind, change: Change | None = None) -> Run:
        background.call(self._hyperpod.runs.act(self.run_id, action, change))
        return self

    def __repr__(self) -> str:
        view = self.view
        reason = f", {view.status.reason}" if view.status.reason else ""
        return f"<Run {self.run_id} '{view.name}' on {view.cluster}: {view.state}{reason}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The run's card in a notebook: its identity, and how to read its log elsewhere; no state, since that would become outdated."""
        del include, exclude
        try:
            name = self.view.name
        except HyperpodError:  # its folder was removed, or cannot be read now
            name = self.run_id
        return {
            CARD: {"version": 1, "run_id": self.run_id, "name": name},
            "text/plain": f"run '{name}', its log: hpj logs {self.run_id}",
        }

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Run) and value.run_id == self.run_id

    def __hash__(self) -> int:
        return hash(self.run_id)


def _seconds(time_limit: str | int | None) -> int | None:
    if time_limit is None:
        return None
    try:
        return parse_duration(str(time_limit))
    except ValueError as error:
        raise InvalidInputError(f"time_limit: {error}", detail={"field": "time_limit"}) from error


def _end_text(view: RunView) -> str:
    outcome_text = "was cancelled" if view.state == "cancelled" else view.state
    return f"it {outcome_text}: {view.status.reason}" if view.status.reason else f"it {outcome_text}"


# --------------------------------------------------------------------------------------------------
# The log of a `Run`.


class Logs:
    """Lines of a log, read lazily; each iteration, and each print, reads them again."""

    def __init__(self, hyperpod: Hyperpod, request: LogRequest) -> None:
        self._hyperpod = hyperpod
        self._request = request

    def __iter__(self) -> Iterator[LogLine]:
        for batch in background.iterate(self._batches()):
            yield from batch

    async def __aiter__(self) -> AsyncIterator[LogLine]:
        """Iterate over the lines without blocking the caller's event loop."""
        import asyncio

        source = self._batches()

        async def following() -> LogBatch | None:
            return await anext(source, None)

        while (batch := await asyncio.wrap_future(background.start(following()))) is not None:
            for line in batch:
                yield line

    async def _batches(self) -> AsyncGenerator[LogBatch, None]:
        """The lines, after checking that the run has the requested logs.

        Raises:
            NotFoundError: The run, rank, node or attempt does not exist.
        """
        check_choice(await self._hyperpod.runs.get(self._request.run_id), self._request)
        async with aclosing(self._hyperpod.logs.lines(self._request)) as batches:
            async for batch in batches:
                yield batch

    def print(self) -> None:
        """Print the lines as they arrive, each with its rank; on a terminal only their text and colours."""
        import sys

        render = terminal_text if sys.stdout.isatty() else str
        for line in self:
            sys.stdout.write(render(str(line)) + "\n")
            sys.stdout.flush()

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self)

    def __repr__(self) -> str:
        return f"<Logs of {self._request.run_id}; iterate or print it>"


def parse_since(since: float | str | None) -> float | None:
    """The Unix time of "since": seconds ago, or text such as "5m".

    Raises:
        InvalidInputError: It is not a duration.
    """
    if isinstance(since, str):
        try:
            since = float(parse_duration(since))
        except ValueError as error:
            raise InvalidInputError(str(error), detail={"field": "since"}) from None
    return None if since is None else time.time() - since
