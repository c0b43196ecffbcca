"""One followed log of a log socket: frames as they come, never more ahead of the page than it can take in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from pydantic_core import to_json
from tornado.websocket import WebSocketClosedError

from hyperpod_jlab.core.errors import HyperpodError, InternalError
from hyperpod_jlab.logs.lines import LogBatch
from hyperpod_jlab.logs.service import check_asked
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


class Subscription:
    """Sends one run's log.

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
                _LOG.exception("following %s failed", self._message.run_id)
                error = InternalError(
                    "following the log failed", hint="the server's log has the details"
                )
            await self._tell(failure(error, number))

    async def _follow(self) -> None:
        number = self._message.id
        run_id = self._message.run_id
        await asyncio.to_thread(self._hyperpod.runs.bundle, run_id)
        request = self._message.request(run_id, follow=True)
        await check_asked(self._hyperpod.runs.get, request)
        await self._tell(Subscribed(number))
        async with aclosing(self._hyperpod.logs.lines(request)) as batches:
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
