"""A run's log in the user's hands."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from hyperpod_jlab.api.background import background
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.quantities import parse_duration
from hyperpod_jlab.model.terminal_text import terminal_text
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.log_choice import check_choice
from hyperpod_jlab.services.logs import LogLine, LogRequest

if TYPE_CHECKING:
    from hyperpod_jlab.services.logs import LogBatch


class Logs:
    """Lines of a log, read when they are gone through; printing it prints them, and each time they are read anew."""

    def __init__(self, hyperpod: Hyperpod, request: LogRequest) -> None:
        self._hyperpod = hyperpod
        self._request = request

    def __iter__(self) -> Iterator[LogLine]:
        for batch in background.iterate(self._batches()):
            yield from batch

    async def __aiter__(self) -> AsyncIterator[LogLine]:
        """Go through the lines without holding up the caller's event loop."""
        import asyncio

        source = self._batches()

        async def following() -> LogBatch | None:
            return await anext(source, None)

        while (batch := await asyncio.wrap_future(background.start(following()))) is not None:
            for line in batch:
                yield line

    async def _batches(self) -> AsyncGenerator[LogBatch, None]:
        """The lines, once it is sure that the run has such.

        Raises:
            NotFoundError: There is no such run, rank, node or attempt.
        """
        check_choice(await self._hyperpod.runs.get(self._request.run_id), self._request)
        async with aclosing(self._hyperpod.logs.lines(self._request)) as batches:
            async for batch in batches:
                yield batch

    def print(self) -> None:
        """Print the lines as they come, each behind its rank; on a terminal only text and colours of them."""
        import sys

        shown = terminal_text if sys.stdout.isatty() else str
        for line in self:
            sys.stdout.write(shown(str(line)) + "\n")
            sys.stdout.flush()

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self)

    def __repr__(self) -> str:
        return f"<Logs of {self._request.run_id}; go through it, or print it>"


def start_of(since: float | str | None) -> float | None:
    """The Unix time at which "since" begins: seconds ago, or text such as "5m".

    Raises:
        InvalidInputError: It is no duration.
    """
    if isinstance(since, str):
        try:
            since = float(parse_duration(since))
        except ValueError as error:
            raise InvalidInputError(str(error), detail={"field": "since"}) from None
    return None if since is None else time.time() - since
