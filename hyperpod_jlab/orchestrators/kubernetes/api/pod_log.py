"""The log of one container of a pod, each line exactly once, over cut connections and restarts of everything.

    log = PodLog(client, namespace, pod, "pytorch")
    async with aclosing(log.follow(cursor)) as portions:    # a Cursor kept from earlier, or none: from the oldest line there is
        async for portion in portions:
            for item in portion.items:                      # Entry | Started | Ended | Gap | Over
                ...
            keep(portion.cursor.to_dict())                  # JSON; after a crash: Cursor.from_dict(...)

What is written with `portion.items` and kept as `portion.cursor` together makes each line come exactly once over crashes of the reader too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from hyperpod_jlab.model.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    nearest_hint,
)
from hyperpod_jlab.orchestrators.kubernetes.api.backoff import Backoff
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.api.complaints import CUT
from hyperpod_jlab.orchestrators.kubernetes.api.log_answer import LOG_GONE, LogAnswer
from hyperpod_jlab.orchestrators.kubernetes.api.log_bytes import RotatedError
from hyperpod_jlab.orchestrators.kubernetes.api.log_cursor import Cursor
from hyperpod_jlab.orchestrators.kubernetes.api.log_items import (
    Ended,
    Entry,
    Gap,
    Item,
    Over,
    Portion,
    Started,
)
from hyperpod_jlab.orchestrators.kubernetes.api.log_plan import (
    Read,
    Say,
    exit_of,
    finished,
    next_step,
)
from hyperpod_jlab.orchestrators.kubernetes.api.pod_state import PodState, pod_state

__all__ = [
    "Cursor",
    "Ended",
    "Entry",
    "Gap",
    "Item",
    "Over",
    "PodLog",
    "PodNews",
    "Portion",
    "Started",
]


_LONG = 10.0
"""Seconds that a stream must have lasted for the next try to come soon."""
_AGAIN = 0.5
_RESTARTING = (0.5, 1.0, 1.5)
"""Seconds between looks in which a restart that the kubelet knows of should have come to the API server."""
_UNKNOWN = 30.0
"""Seconds for which a 401 is not believed."""
_GONE = 60.0
"""Seconds for which a runtime may be silent about an ended container, before its log is taken to be removed."""
_FRESH = 2.0
"""Seconds for which a pod's state is believed when its log is opened. A container that ended in them is found out when its log is read to the end (`_swapped`)."""
_WAITING = 0.1
_NEWS = 10.0
"""Seconds after which a pod is looked at although nothing was heard of it."""


_MENDED = (UnreachableError, NotFoundError, InvalidInputError)
"""Errors that another try may mend: a pod's state is older than what its kubelet does."""


class PodNews(Protocol):
    """Who knows when a pod's state changes, so that a follower need not ask: a `Watch` of pods with `pod_state` rows."""

    @property
    def version(self) -> int:
        """Grows with each change."""
        ...

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or for the time (seconds); returns `version`."""
        ...


class PodLog:
    """Follows one container (all its restarts) of one pod."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        pod: str,
        container: str,
        *,
        news: PodNews | None = None,
    ) -> None:
        """Follow a container.

        Args:
            client: Of the cluster.
            namespace: Of the pod.
            pod: Its name.
            container: The container's name.
            news: Tells when the pod may have changed.
        """
        self.trouble: HyperpodError | None = None
        """Why nothing can be read at the moment (a node that does not answer); None when all is well, also while a container waits to start: see `state`."""
        self.state: PodState | None = None
        """The pod as it was last seen."""
        self._client, self._news = client, news
        self._pod, self._container = pod, container
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        self._at = Cursor()
        self._backoff = Backoff(0.1, 5.0)
        self._doubt = False
        self._lost = False
        self._short = 0
        self._looked = 0.0
        self._since: dict[str, float] = {}

    async def follow(self, cursor: Cursor | None = None) -> AsyncGenerator[Portion, None]:
        """What the container writes, from a cursor on, until nothing more can come (`Over` is the last item then).

        Waits for a container that has yet to start. While the cluster or the node does not answer it tries again, for ever, and `trouble` says so.

        Raises:
            NotFoundError: There is no such pod, and the cursor knows of none.
            InvalidInputError: The pod has no such container.
            DeniedError: The user may not read this pod or its log.
        """
        async with aclosing(self._run(cursor or Cursor(), follow=True)) as portions:
            async for portion in portions:
                yield portion

    async def read(self, cursor: Cursor | None = None) -> AsyncGenerator[Portion, None]:
        """What is there now, from a cursor on; does not wait for more. `Over` comes where `follow` would give it.

        Raises:
            NotFoundError: There is no such pod, and the cursor knows of none.
            InvalidInputError: The pod has no such container.
            DeniedError: The user may not read this pod or its log.
            UnreachableError: The cluster or the node does not answer.
        """
        async with aclosing(self._run(cursor or Cursor(), follow=False)) as portions:
            async for portion in portions:
                yield portion

    # ------------------------------------------------------------------------------------------ step by step

    async def _run(self, cursor: Cursor, *, follow: bool) -> AsyncGenerator[Portion, None]:
        self._at, self._doubt = cursor, True
        if cursor.over:
            return
        if self.state is None:
            await self._look(patient=follow)
        if self.state is None and not cursor.uid:
            raise NotFoundError(f"there is no pod {self._pod}", code="no_pod")
        if self.state is not None and self._container not in self.state.names:
            raise InvalidInputError(
                f"the pod {self._pod} has no container {self._container}",
                code="no_container",
                hint=nearest_hint(self._container, self.state.names),
            )
        while not self._at.over:
            step = next_step(self.state, self._container, self._at, doubt=self._doubt)
            if isinstance(step, Say):
                self._at = step.portion.cursor
                # Of a container that was just found nothing was read yet.
                self._doubt, self._lost, self._short = True, False, 0
                yield step.portion
            elif isinstance(step, Read):
                async with aclosing(self._reading(step, follow=follow)) as portions:
                    async for portion in portions:
                        self._at = portion.cursor
                        yield portion
                if step.live and not follow:
                    return
            elif follow:
                await self._wait()
            else:
                return

    async def _reading(self, step: Read, *, follow: bool) -> AsyncGenerator[Portion, None]:
        """Asks for the log once, and sees what became of it."""
        began, lost = time.monotonic(), self._lost
        answer = self._answer(search=lost or self._at.anchor is None)
        try:
            if lost and (aside := await self._other_log(step)) is not None:
                self._lost = False
                yield aside
                return
            live = follow and step.live and not lost
            async with aclosing(self._portions(answer, step, live=live)) as portions:
                async for portion in portions:
                    self._well()
                    yield portion
        except RotatedError:
            self._lost = True
            return
        except HyperpodError as error:
            if (given_up := await self._give_up(error, step, follow=follow)) is not None:
                yield given_up
                return
            # What ended while it was read to a clean end has said all, even if it cannot be asked again.
            self._doubt = self._doubt or step.live or error.code == CUT
        else:
            self._well()
            self._lost = False
            if (end := await self._ended(answer, step, searched=lost)) is not None:
                yield end
            if answer.moved or not step.live:
                return
        if not follow:
            return
        if answer.new or time.monotonic() - began > _LONG:
            self._backoff.reset()
        await asyncio.sleep(self._backoff.pause())
        await self._look(patient=True)

    async def _ended(self, answer: LogAnswer, step: Read, *, searched: bool) -> Portion | None:
        """An answer has ended cleanly: that was all of a container that runs no more, if nothing new came."""
        if answer.moved:
            return None
        if not searched:
            self._doubt = not answer.reached
        if step.live:
            return None
        if answer.new:
            self._short = 0
        elif searched:
            return self._finished(*((Gap("rotated"),) if self._doubt else ()))
        elif answer.reached:
            return self._finished()
        elif self._short:
            self._lost = True
        else:
            self._short += 1  # the kubelet may have died over it, whose answers end cleanly then
            await asyncio.sleep(_AGAIN)
        return None

    async def _other_log(self, step: Read) -> Portion | None:
        """The log is not the one that was read: has the kubelet begun a new file (None), or is it another container's?"""
        if step.live:
            for pause in _RESTARTING:
                await asyncio.sleep(pause)
                await self._look(patient=True)
                if not self._is_newest():
                    return Portion((), self._at)
        return await self._swapped() if step.previous else None

    async def _swapped(self) -> Portion | None:
        """What was read as the previous container's may have been the newest one's already: the kubelet knows of a restart before the API server does.

        Then the previous one's log comes now, late but whole, and the newest one's goes on.
        """
        at, state = self._at, self.state
        if at.last is None or at.anchor is None or state is None:
            return None
        newest = state.container(self._container)
        if await self._answer().first_stamp() != at.anchor.stamp:
            return None
        bare = Cursor(uid=at.uid, restart=at.restart, container_id=at.container_id)
        answer = LogAnswer(self._client, f"{self._path}/log", self._container, bare)
        items: list[Item] = []
        step = Read(previous=True, live=False)
        async with aclosing(self._portions(answer, step, live=False)) as portions:
            async for portion in portions:
                items += portion.items
        if answer.moved:
            return None
        ended = finished(bare, exit_of(state, self._container, at.container_id), *items)
        started = Started(newest.restart, newest.container_id, newest.started_at)
        cursor = replace(at, container_id=newest.container_id, restart=newest.restart)
        return Portion((*ended.items, started), cursor)

    # ------------------------------------------------------------------------------------------ parts

    def _answer(self, *, search: bool = False) -> LogAnswer:
        return LogAnswer(
            self._client, f"{self._path}/log", self._container, self._at, search=search
        )

    def _portions(
        self, answer: LogAnswer, step: Read, *, live: bool
    ) -> AsyncGenerator[Portion, None]:
        wanted = self._at.container_id

        async def right() -> bool:
            if time.monotonic() - self._looked > _FRESH:
                await self._look(patient=False)
            state = self.state
            if state is None or state.uid != self._at.uid:
                return False
            one = state.container(self._container)
            before = one.previous.container_id if one.previous else ""
            return wanted == (before if step.previous else one.container_id)

        return answer.portions(previous=step.previous, live=live, right=right)

    def _finished(self, *first: Item) -> Portion:
        exit_ = exit_of(self.state, self._container, self._at.container_id)
        self._at = replace(self._at, finished=True)
        return finished(self._at, exit_, *first)

    def _is_newest(self) -> bool:
        state, at = self.state, self._at
        return (
            state is not None
            and state.uid == at.uid
            and state.container(self._container).container_id == at.container_id
            and state.container(self._container).running
        )

    def _well(self) -> None:
        self.trouble = None
        self._since.clear()

    async def _give_up(self, error: HyperpodError, step: Read, *, follow: bool) -> Portion | None:
        """What to say instead of trying for ever; None: try again. Raises what no further try can mend."""
        if step.previous and await self._removed(error):
            return self._finished(Gap("deleted"))
        if not follow:
            raise error
        self.trouble = error
        first = self._since.setdefault(error.code, time.monotonic())
        if isinstance(error, DeniedError):
            # A cluster that is being started, or a token just being renewed, may refuse for a moment.
            if error.code != "unauthorized" or time.monotonic() - first > _UNKNOWN:
                raise error
        elif error.code == LOG_GONE:
            if not step.live and time.monotonic() - first > _GONE:
                return self._finished(Gap("deleted"))
        elif not isinstance(error, _MENDED):
            raise error
        return None

    async def _removed(self, error: HyperpodError) -> bool:
        """Whether the log of the previous container has been removed: nothing is wrong with the newest one's."""
        if "previous terminated container" in error.message:
            return True
        if error.code != LOG_GONE:
            return False
        try:
            await self._answer().first_stamp()
        except HyperpodError:
            return False
        return True

    async def _look(self, *, patient: bool) -> None:
        """Ask for the pod's state."""
        backoff = Backoff(0.2, 5.0)
        while True:
            try:
                self._looked = time.monotonic()
                self.state = pod_state(await self._client.get(self._path))
            except NotFoundError as error:
                if error.code != NotFoundError.default_code:
                    raise
                self.state = None
            except UnreachableError as error:
                if not patient:
                    raise
                self.trouble = error
                await asyncio.sleep(backoff.pause())
                continue
            return

    async def _wait(self) -> None:
        """Wait for a change of the pod's state."""
        before = self.state
        pause = Backoff(_WAITING, 2.0)
        while self.state == before:
            if self._news is not None:
                version = self._news.version
                await self._look(patient=True)
                if self.state == before:
                    await self._news.changed(version, _NEWS)
            else:
                await asyncio.sleep(pause.pause())
                await self._look(patient=True)
        self._well()
