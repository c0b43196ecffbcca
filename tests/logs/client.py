"""One who follows a run in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from hyperpod_jlab.logs.lines import LogBatch, LogLine
from hyperpod_jlab.logs.service import LogRequest, LogService
from tests.logs.writing import Ledger


class Client:
    """Follows in a task of its own, and lets a test wait for what it must see."""

    def __init__(self, logs: LogService, **wanted: object) -> None:
        # Who leaves lines out on purpose keeps no book of them.
        self._book = not wanted
        self.lines: list[LogLine] = []
        self.batches: list[LogBatch] = []
        self.ledger = Ledger()
        self._changed = asyncio.Event()
        self._request = LogRequest("run", follow=True, **wanted)  # type: ignore[arg-type]
        self.task = asyncio.create_task(self._follow(logs))

    async def _follow(self, logs: LogService) -> None:
        async with aclosing(logs.lines(self._request)) as batches:
            async for batch in batches:
                self.batches.append(batch)
                self.lines += batch
                if self._book:
                    self.ledger.take_all(batch)
                self._changed.set()

    @property
    def texts(self) -> list[str]:
        return [line.line for line in self.lines]

    async def until(self, seen: Callable[[Client], bool]) -> None:
        async with asyncio.timeout(60):
            while not seen(self):
                self._changed.clear()
                waiting = asyncio.create_task(self._changed.wait())
                await asyncio.wait([waiting, self.task], return_when="FIRST_COMPLETED")
                waiting.cancel()
                if self.task.done():
                    self.task.result()
                    assert seen(self), self.texts[-5:]

    async def sees(self, text: str) -> None:
        await self.until(lambda client: text in client.texts)

    async def end(self) -> None:
        async with asyncio.timeout(60):
            await self.task


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - looks into what says nothing by itself
            await asyncio.sleep(0.02)


Start = Callable[..., Client]
