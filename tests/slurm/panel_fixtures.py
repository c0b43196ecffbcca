"""A server with its pages, as far as the scheduler's calls go: the real server's parts, asked as the panel's code asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from jupyter_events import EventLogger

from hyperpod_jlab.clusters.routes import ClustersQuery, list_clusters
from hyperpod_jlab.run.routes import RunsQuery, list_runs, show_run
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.process import ServerProcess
from hyperpod_jlab.server.run_events import SCHEMA_FILE, SCHEMA_ID

POLL = 60.0
"""Seconds between two looks of a page that is shown (src/clusters/model.ts, src/runs/model.ts)."""


class Server:
    """One server process.

    Args:
        hyperpod: Its services.
    """

    def __init__(self, hyperpod: Hyperpod) -> None:
        bus = EventLogger()
        bus.register_event_schema(SCHEMA_FILE)
        bus.add_listener(schema_id=SCHEMA_ID, listener=self._hear)
        self.process = ServerProcess(bus)
        self.process._hyperpod = hyperpod
        self.told: list[str] = []
        self.line: Any = None
        self._call = Call(self.process, Path("/"), "ada")

    async def _hear(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        self.told.append(f"{data['run_id']} {data['state']}")

    async def look(self) -> None:
        """What a page asks for at each turn: the clusters and the runs."""
        self.process.mark_active()
        lines = (await list_clusters(self._call, ClustersQuery())).clusters
        (self.line,) = [line for line in lines if line.orchestrator == "slurm"]
        self.process.mark_active()
        await list_runs(self._call, RunsQuery(limit=50))

    async def show(self, run_id: str) -> str:
        """What a run's page asks for once; the run's state."""
        self.process.mark_active()
        return (await show_run(self._call, run_id)).state

    async def page(self, *, every: float, after: float) -> None:
        """A tab with the panel in it, without end."""
        await asyncio.sleep(after)
        while True:
            await self.look()
            await asyncio.sleep(every)

    @asynccontextmanager
    async def pages(self, count: int, *, every: float = POLL) -> AsyncIterator[None]:
        """So many tabs, which were opened one after another."""
        async with AsyncExitStack() as stack:
            for number in range(count):
                page = self.page(every=every, after=number * every / count)
                stack.push_async_callback(end, asyncio.create_task(page))
            yield

    @asynccontextmanager
    async def logs(self, run_id: str, count: int) -> AsyncIterator[list[int]]:
        """So many streams of a run's log; how many lines each has got."""
        from hyperpod_jlab.logs.service import LogRequest

        hyperpod = await self.process.hyperpod()
        got = [0] * count

        async def follow(number: int) -> None:
            async for batch in hyperpod.logs.lines(LogRequest(run_id, follow=True)):
                got[number] += len(batch)

        async with AsyncExitStack() as stack:
            for number in range(count):
                stack.push_async_callback(end, asyncio.create_task(follow(number)))
            yield got


async def end(task: asyncio.Task[None]) -> None:
    """End what has no end; what went wrong in it is raised."""
    if not task.done():
        task.cancel()
    with suppress(asyncio.CancelledError):
        await task
