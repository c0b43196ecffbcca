"""The log socket: one per page, for any number of followed logs."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InternalError, RefusedError
from hyperpod_jlab.server.base import AUTH_RESOURCE, ErrorShape, process_of

if TYPE_CHECKING:
    from hyperpod_jlab.server.log_messages import Failure, Message, Subscribe
    from hyperpod_jlab.server.log_subscription import Subscription

MAX_SUBSCRIPTIONS = 64

PING_INTERVAL_S = 30.0
"""Default seconds between pings; the server's configuration overrides it."""


class LogSocket(ExtensionHandlerMixin, WebSocketMixin, ErrorShape, WebSocketHandler):
    """``GET logs`` with an upgrade, see docs/rest-api.md. Checks origin, user and authorizer before the upgrade."""

    auth_resource = AUTH_RESOURCE

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the socket."""
        if not await self._may_read():
            raise HTTPError(403)
        if self.request.headers.get("Upgrade", "").lower() != "websocket":
            raise HTTPError(HTTPStatus.UPGRADE_REQUIRED, reason="This is a WebSocket")
        if not self.check_origin():
            raise HTTPError(403, reason="Cross origin sockets are not allowed")
        # Import now, or each of the first messages would wait for it.
        await asyncio.to_thread(import_module, "hyperpod_jlab.server.log_subscription")
        await super().get(*args, **kwargs)

    @property
    def ping_interval(self) -> float:
        """Seconds between pings. Jupyter's mixin returns milliseconds, but tornado expects seconds."""
        seconds = self.settings.get("websocket_ping_interval")
        return PING_INTERVAL_S if seconds is None else float(seconds)

    @property
    def ping_timeout(self) -> float:
        """Timeout for a pong, in seconds; then the socket is closed."""
        seconds = self.settings.get("websocket_ping_timeout")
        return self.ping_interval if seconds is None else float(seconds)

    def open(self, *_args: Any, **_kwargs: Any) -> None:
        """Start serving. tornado sends pings itself, so the mixin must not."""
        self._subscriptions: dict[int, Subscription] = {}
        self._process = process_of(self)
        self._process.sockets.add(self)

    def on_close(self) -> None:
        """The client has disconnected."""
        self._process.sockets.discard(self)
        for subscription in list(self._subscriptions.values()):
            subscription.stop()

    async def on_message(self, message: str | bytes) -> None:
        """Handle a message, or respond with its error."""
        from hyperpod_jlab.server.log_messages import failure, read_message

        try:
            await self._do(read_message(message))
        except HyperpodError as error:
            number = error.detail.pop("id", None)
            response = failure(error, number)
            await self._write_json(response)
        except Exception:  # report any error to the page, and keep the socket open
            self.log.exception("a message of a log socket failed")
            response = failure(InternalError("the message could not be processed"))
            await self._write_json(response)

    async def _do(self, message: Message) -> None:
        if message.type == "subscribe":
            await self._subscribe(message)
            return
        subscription = self._subscriptions.get(message.id)
        if subscription is None:  # it has just ended; the page does not know yet
            return
        if message.type == "ack":
            subscription.acknowledge(message.seq)
        else:
            del self._subscriptions[message.id]
            subscription.stop()

    async def _subscribe(self, message: Subscribe) -> None:
        from hyperpod_jlab.server.log_subscription import Subscription

        number = message.id
        previous = self._subscriptions.pop(number, None)
        if previous is not None:
            previous.stop()
        if not await self._may_read():
            raise DeniedError("you do not have the permission to read runs here", detail={"id": number})
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise RefusedError(f"a socket can follow at most {MAX_SUBSCRIPTIONS} logs at a time", detail={"id": number})
        try:
            hyperpod = await self._process.hyperpod()
        except HyperpodError as error:
            error.detail["id"] = number
            raise
        if self.ws_connection is None:  # closed in the meantime
            return
        subscription = Subscription(hyperpod, message, self._write)
        self._subscriptions[number] = subscription
        subscription.when_done(lambda: self._forget(number, subscription))

    def _forget(self, number: int, subscription: Subscription) -> None:
        if self._subscriptions.get(number) is subscription:
            del self._subscriptions[number]

    async def _may_read(self) -> bool:
        is_allowed = self.authorizer.is_authorized(self, self.current_user, "read", AUTH_RESOURCE)
        return bool(await ensure_async(is_allowed))

    async def _write(self, data: bytes) -> None:
        await self.write_message(data)

    async def _write_json(self, message: Failure) -> None:
        from pydantic_core import to_json

        try:
            await self._write(to_json(message))
        except WebSocketClosedError:
            return
