"""The configured clusters in a line each: one that says nothing for long keeps nobody from the lines of the others."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.cluster import Cluster
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.engines.protocol import Orchestrator
from hyperpod_jlab.engines.registry import Engines

TIMEOUT = 6.0
"""Seconds for which those who want all lines wait for one of them."""

_KEPT = 60.0
"""Seconds for which an answer that came too late is told to who asks next."""


class ClusterLines:
    """Asks the clusters, each one question at a time, and remembers what it told last.

    Args:
        settings: The configuration.
        engines: The engines of its clusters.
    """

    def __init__(self, settings: Settings, engines: Engines) -> None:
        self._settings = settings
        self._engines = engines
        self._seen: dict[str, tuple[float, Cluster]] = {}
        self._answers: Cache[str, Cluster] = Cache(lambda _: _KEPT)

    async def every(self, seconds: float | None = None) -> list[Cluster]:
        """All clusters, in the order of the configuration.

        One that does not answer says why in its reason, and has the numbers of when it last did. A question that takes longer than
        `seconds` goes on, and whoever asks next has its answer.

        Args:
            seconds: How long to wait for each of them; default: `TIMEOUT`.
        """
        wait = TIMEOUT if seconds is None else seconds
        return list(
            await asyncio.gather(*(self._within(name, wait) for name in self._settings.clusters))
        )

    async def one(self, name: str) -> Cluster:
        """One cluster, however long it takes."""
        default = name == self._settings.default_cluster
        try:
            engine = self._engines.get(name)
            changes = engine.actions.changes if engine.actions is not None else ()
            actions = _actions_of(engine)
            line = replace(
                await engine.cluster(), default=default, actions=actions, changes=changes
            )
        except HyperpodError as error:
            return self._silent(name, error.message)
        self._seen[name] = (time.time(), line)
        return line

    async def close(self) -> None:
        """Break off the questions that go on."""
        await self._answers.close()

    async def _within(self, name: str, seconds: float) -> Cluster:
        if self._answers.is_fresh(name):  # it came too late for who asked
            line = await self._answers.get(name, lambda: self.one(name))
        else:
            question = self._answers.start(name, lambda: self.one(name))
            left = seconds - self._answers.waited(name)
            await asyncio.wait([question], timeout=max(0.0, left))
            if not question.done():
                waited = self._answers.waited(name)
                return self._silent(name, f"it has not answered yet, for {waited:.0f} s")
            line = question.result()
        self._answers.forget(name)  # it is told once
        return line

    def _silent(self, name: str, reason: str) -> Cluster:
        """A cluster that does not answer, with what it told last."""
        kind = self._settings.clusters[name].orchestrator
        bare = Cluster(name, kind, name == self._settings.default_cluster, "unreachable")
        at, last = self._seen.get(name, (None, bare))
        return replace(last, state="unreachable", reason=reason, as_of=at)


def _actions_of(engine: Orchestrator) -> tuple[str, ...]:
    """What can be done to a cluster's runs and jobs."""
    beyond = {"adopt": engine.adoption, "ports": engine.ports}
    offered = engine.actions.offered if engine.actions is not None else ()
    return (*offered, *(name for name, concern in beyond.items() if concern is not None))
