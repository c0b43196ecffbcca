"""What was looked at, for all who ask: one look at a time at each thing, its rows shown as they come, the last ones kept with their age.

A look goes on only while somebody asks for it: it waits when nobody has for a while, and goes on where it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hyperpod_jlab.core.errors import HyperpodError, InternalError, InvalidInputError, NotFoundError

Item = TypeVar("Item")

FRESH = 50.0
"""Seconds for which a look is shown to all who ask: a page that asks each minute has a new one each time."""

RETRY = 5.0
"""Seconds until a look that failed is tried again."""

GRACE = 0.3
"""Seconds for which somebody who asks waits for the end of a look; after them for what it tells first only."""

_BLINK = 0.05
"""Seconds in which a look has ended that had no more to tell than that."""

ATTENTION = 20.0
"""Seconds after which nobody is there any more; a page that is shown asks each second or so while a look goes on."""

_CALLS = 10
"""Calls of a look up to which it is fresh for `FRESH`; one of more calls for longer, so that a minute has no more of them."""

_MOST = 64
"""Things of which the last look is kept."""


class Look(Generic[Item]):
    """One look, as far as it has come: its items by a key, in their order."""

    def __init__(self, attention: _Attention) -> None:
        self.began_at = time.time()
        self.items: dict[Hashable, Item] = {}
        self.listed = False
        """Whether all items are there, though more may become known of each."""
        self.calls = 0
        """How many calls brought items so far."""
        self.told = asyncio.Event()
        """Set once there is something to show, or will be nothing."""
        self._attention = attention

    async def put(self, items: dict[Hashable, Item]) -> None:
        """Add what a call has told, and wait while nobody wants to know more."""
        self.calls += 1
        self.items |= items
        self.told.set()
        await self.wanted()

    async def wanted(self) -> None:
        """Wait while nobody asks."""
        await self._attention.wanted()

    def end_of_list(self) -> None:
        """All items are there."""
        self.listed = True
        self.told.set()


@dataclass(frozen=True)
class Shown(Generic[Item]):
    """What is known now.

    Attributes:
        rows: The items.
        as_of: When the question was put that they answer (Unix seconds).
        loading: Whether more is on its way: then it is worth asking again in a moment.
        problem: Why there is nothing newer, or not all.
    """

    rows: list[Item]
    as_of: float
    loading: bool = False
    problem: HyperpodError | None = None


Read = Callable[[Look[Item]], Awaitable[None]]
"""Looks: puts what it finds into the look."""


class Looks:
    """The last look at each thing, by a key."""

    def __init__(self) -> None:
        self._held: dict[Hashable, _Held] = {}

    async def get(
        self, key: Hashable, read: Read[Item], *, refresh: bool = False, fresh: float | None = None
    ) -> Shown[Item]:
        """What is known of a thing; it is looked at when that is too old, and by one at a time however many ask.

        Args:
            key: The thing.
            read: Looks at it.
            refresh: Look at it now, however young the last look is.
            fresh: Seconds for which the last look is good enough; default: `FRESH`.

        Raises:
            HyperpodError: It could not be looked at, and nothing is known from before; or it is gone.
        """
        held = self._held.pop(key, None) or _Held()
        self._held[key] = held  # the youngest last
        held.attention.note()
        if held.task is None and (refresh or held.is_due(FRESH if fresh is None else fresh)):
            self._begin(key, held, read)
        if held.task is not None:
            await self._watch(held, held.task)
        return held.show()

    def last(self, key: Hashable) -> list[Any]:
        """The rows that would be shown now, without looking."""
        held = self._held.get(key)
        look = held.look() if held else None
        return list(look.items.values()) if look else []

    def forget(self, key: Hashable) -> None:
        """Something was changed there: whoever asks next has it looked at again, and sees the old rows until then."""
        if key in self._held:
            self._held[key].ended = None

    async def close(self) -> None:
        """Break off what goes on."""
        tasks = [held.task for held in self._held.values() if held.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, held: _Held, read: Read[Any]) -> None:
        held.running = Look(held.attention)
        held.task = asyncio.ensure_future(self._look(key, held, held.running, read))

    async def _look(self, key: Hashable, held: _Held, look: Look[Any], read: Read[Any]) -> None:
        held.ended = time.monotonic()  # unless something is changed meanwhile
        # What is no error of ours ends the task, and asyncio tells it.
        problem: HyperpodError | None = InternalError(f"to look at {key} has failed")
        try:
            await read(look)
            problem = None
        except HyperpodError as error:
            problem = error
        finally:
            held.settle(look, problem)
            self._tidy()

    async def _watch(self, held: _Held, task: asyncio.Task[None]) -> None:
        """Wait a moment for the end, then until there is something to show."""
        # One who goes away takes the look from nobody else.
        await asyncio.wait({task}, timeout=GRACE)
        if held.shown is None and held.running is not None:
            await held.running.told.wait()
            await asyncio.wait({task}, timeout=_BLINK)

    def _tidy(self) -> None:
        idle = [key for key, held in self._held.items() if held.task is None]
        for key in idle[: max(0, len(self._held) - _MOST)]:
            del self._held[key]


class _Attention:
    """Whether somebody asks."""

    def __init__(self) -> None:
        self._asked = time.monotonic()
        self._event = asyncio.Event()

    def note(self) -> None:
        self._asked = time.monotonic()
        self._event.set()

    async def wanted(self) -> None:
        while time.monotonic() - self._asked > ATTENTION:
            self._event.clear()
            await self._event.wait()


@dataclass
class _Held:
    """What is kept of one thing: the look that is shown, the one that goes on, and how that before it ended."""

    attention: _Attention = field(default_factory=_Attention)
    shown: Look[Any] | None = None
    running: Look[Any] | None = None
    task: asyncio.Task[None] | None = None
    problem: HyperpodError | None = None
    ended: float | None = None

    def is_due(self, fresh: float) -> bool:
        if self.ended is None:
            return True
        age = time.monotonic() - self.ended
        if self.problem is not None:
            return age > RETRY
        return self.shown is None or age > max(fresh, FRESH * self.shown.calls / _CALLS)

    def settle(self, look: Look[Any], problem: HyperpodError | None) -> None:
        """A look has ended: keep what it found; where it failed what there was, unless this one found more."""
        self.running = self.task = None
        self.problem = problem
        if self.ended is not None:
            self.ended = time.monotonic()
        if isinstance(problem, NotFoundError | InvalidInputError):
            self.shown = None
        elif problem is None or look.listed or (self.shown is None and look.items):
            self.shown = look
        look.told.set()

    def look(self) -> Look[Any] | None:
        """The look to show: the one that goes on as soon as it hides nothing of the one before."""
        running = self.running
        if running is not None and (running.listed or self.shown is None):
            return running
        return self.shown

    def show(self) -> Shown[Any]:
        look = self.look()
        if look is None or (self.running is None and self.shown is None):
            raise self.problem or InternalError("a look was broken off")
        return Shown(
            list(look.items.values()),
            look.began_at,
            loading=self.running is not None,
            problem=self.problem if self.running is not look else None,
        )
