"""One followed log of a log socket: sends frames as they arrive, with back-pressure from the page."""

from __future__ import annotations

import asyncio
import contextlib
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
from hyperpod_jlab.server.log_messages import Answer, End, Subscribe, Subscribed, failure, frame_message, split_batch

MAX_UNACKNOWLEDGED = 4
"""Maximum number of unacknowledged frames."""

_YIELD_BYTES = 32 << 10
"""Frames up to this many bytes are built in the event loop: a thread would be slower."""

_LOG = logging.getLogger(__name__)

Send = Callable[[bytes], Awaitable[None]]
Follow = Callable[[Hyperpod, Subscribe], Awaitable[AsyncGenerator[LogBatch, None]]]


class Subscription:
    """Sends one log.

    Args:
        hyperpod: The services.
        message: The client's subscription.
        send: Sends a message; returns once the network has accepted it.
    """

    def __init__(self, hyperpod: Hyperpod, message: Subscribe, send: Send) -> None:
        self._hyperpod = hyperpod
        self._message = message
        self._write = send
        self._sent = 0
        self._acknowledged = 0
        self._semaphore = asyncio.Event()
        self._semaphore.set()
        self._task = asyncio.create_task(self._run(), name="hyperpod-log-subscription")

    def acknowledge(self, seq: int) -> None:
        """Handle the client's acknowledgement of the frames up to `seq`."""
        self._acknowledged = max(self._acknowledged, min(seq, self._sent))
        if self._sent - self._acknowledged < MAX_UNACKNOWLEDGED:
            self._semaphore.set()

    def when_done(self, call: Callable[[], None]) -> None:
        """Register a callback for the end of the subscription."""
        self._task.add_done_callback(lambda _: call())

    def stop(self) -> None:
        """Stop sending."""
        self._task.cancel()

    async def _run(self) -> None:
        number = self._message.id
        with contextlib.suppress(WebSocketClosedError):
            try:
                await self._follow()
            except WebSocketClosedError:
                raise
            except Exception as error:  # noqa: BLE001 - a page must hear of it, whatever it is
                if not isinstance(error, HyperpodError):
                    _LOG.exception("following failed: %.1000r", self._message)
                    error = InternalError("following the log failed", hint="the server's log has the details")
                await self._send_message(failure(error, number))

    async def _follow(self) -> None:
        number = self._message.id
        follow = await asyncio.to_thread(_find_follow, self._message)
        lines = await follow(self._hyperpod, self._message)
        await self._send_message(Subscribed(number))
        async with aclosing(lines) as batches:
            async for batch in batches:
                for portion in split_batch(batch):
                    await self._send(portion)
        await self._send_message(End(number))

    async def _send(self, batch: LogBatch) -> None:
        await self._semaphore.wait()
        self._sent += 1
        if self._sent - self._acknowledged >= MAX_UNACKNOWLEDGED:
            self._semaphore.clear()
        parameters = (self._message.id, self._sent, batch)
        if sum(block.size for block in batch.blocks) < _YIELD_BYTES:
            await self._write(frame_message(*parameters))
        else:
            await self._write(await asyncio.to_thread(frame_message, *parameters))

    async def _send_message(self, message: Answer) -> None:
        await self._write(to_json(message))


def _find_follow(message: Subscribe) -> Follow:
    """The follower of the logs that a message names.

    Raises:
        InvalidInputError: It names no log, or several.
    """
    targets = [function for field, function in follows().items() if getattr(message, field) is not None]
    if len(targets) != 1:
        raise InvalidInputError("give either run_id or cluster", code="invalid_message", detail={"field": "run_id"})
    module, _, name = targets[0].partition(":")
    follow: Follow = getattr(import_module(module), name)
    return follow
