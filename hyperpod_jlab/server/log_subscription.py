"""One followed log of a log socket: frames as they come, never more ahead of the page than it can take in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from importlib import import_module

from pydantic_core import to_json
from tornado.websocket import WebSocketClosedError

from hyperpod_jlab.contributions import follows
from hyperpod_jlab.core.errors import HyperpodError, InternalError, InvalidInputError
from hyperpod_jlab.logs.lines import LogBatch
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.log_messages import (
    Answer,
    End,
    Subscribe,
    Subscribed,
    failure,
    frame_message,
    portions,
)

AHEAD = 4
"""Frames that may be sent and not acknowledged."""

_SMALL = 32 << 10
"""Up to so many bytes a frame is made on the spot: a thread would take longer."""

_LOG = logging.getLogger(__name__)

Send = Callable[[bytes], Awaitable[None]]
Follow = Callable[[Hyperpod, Subscribe], Awaitable[AsyncGenerator[LogBatch, None]]]


class Subscription:
    """Sends one log.

    Args:
        hyperpod: The services.
        message: What the client wants.
        send: Sends a message; returns once the network has taken it.
    """

    def __init__(self, hyperpod: Hyperpod, message: Subscribe, send: Send) -> None:
        self._hyperpod = hyperpod
        self._message = message
        self._write = send
        self._sent = 0
        self._acknowledged = 0
        self._room = asyncio.Event()
        self._room.set()
        self._task = asyncio.create_task(self._run(), name="hyperpod-log-subscription")

    def acknowledge(self, seq: int) -> None:
        """The client has taken in the frames up to `seq`."""
        self._acknowledged = max(self._acknowledged, min(seq, self._sent))
        if self._sent - self._acknowledged < AHEAD:
            self._room.set()

    def when_done(self, call: Callable[[], None]) -> None:
        """Call something when the subscription is over."""
        self._task.add_done_callback(lambda _: call())

    def stop(self) -> None:
        """Send nothing more."""
        self._task.cancel()

    async def _run(self) -> None:
        number = self._message.id
        try:
            await self._follow()
        except WebSocketClosedError:
            return
        except Exception as error:  # noqa: BLE001 - a page must hear of it, whatever it is
            if not isinstance(error, HyperpodError):
                _LOG.exception("following failed: %r", self._message)
                error = InternalError(
                    "following the log failed", hint="the server's log has the details"
                )
            await self._tell(failure(error, number))

    async def _follow(self) -> None:
        number = self._message.id
        follow = await asyncio.to_thread(_follow_of, self._message)
        lines = await follow(self._hyperpod, self._message)
        await self._tell(Subscribed(number))
        async with aclosing(lines) as batches:
            async for batch in batches:
                for portion in portions(batch):
                    await self._send(portion)
        await self._tell(End(number))

    async def _send(self, batch: LogBatch) -> None:
        await self._room.wait()
        self._sent += 1
        if self._sent - self._acknowledged >= AHEAD:
            self._room.clear()
        given = (self._message.id, self._sent, batch)
        if sum(block.size for block in batch.blocks) < _SMALL:
            await self._write(frame_message(*given))
        else:
            await self._write(await asyncio.to_thread(frame_message, *given))

    async def _tell(self, message: Answer) -> None:
        await self._write(to_json(message))


def _follow_of(message: Subscribe) -> Follow:
    """What follows the logs that a message names.

    Raises:
        InvalidInputError: It names none, or several.
    """
    named = [
        function for field, function in follows().items() if getattr(message, field) is not None
    ]
    if len(named) != 1:
        raise InvalidInputError(
            "give either run_id or cluster", code="invalid_message", detail={"field": "run_id"}
        )
    module, _, name = named[0].partition(":")
    found: Follow = getattr(import_module(module), name)
    return found
