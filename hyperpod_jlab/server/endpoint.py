"""Maps HTTP requests to the functions that routes name: the only module that reads requests and writes responses."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any

from tornado.iostream import StreamClosedError

from hyperpod_jlab.contributions import Route
from hyperpod_jlab.core.wire import to_json
from hyperpod_jlab.server.base import API_PREFIX, HyperPodHandler, guarded
from hyperpod_jlab.server.call import Call, Download
from hyperpod_jlab.server.routes import ROUTES

if TYPE_CHECKING:
    from pydantic import BaseModel

    from hyperpod_jlab.server.requests import RequestModel


@dataclass(frozen=True)
class Endpoint:
    """The function behind a route, with the types of its arguments and result.

    Attributes:
        function: The function.
        query: The model of the query, or None if it takes none.
        body: The model of the body, or None if it takes none.
        answer: The type of the response.
    """

    function: Callable[..., Coroutine[Any, Any, Any]]
    query: type[BaseModel] | None
    body: type[RequestModel] | None
    answer: Any


@lru_cache(maxsize=256)
def endpoint_of(route: Route) -> Endpoint:
    """The endpoint of a route. Imports the function's module, which is slow the first time."""
    module, _, name = route.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    signature = inspect.signature(function, eval_str=True)
    types = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    expected = {"call", *route.parameters, "query", "body"}
    assert types.keys() <= expected, f"{route.function} takes something that no request has"
    return Endpoint(function, types.get("query"), types.get("body"), signature.return_annotation)


class EndpointHandler(HyperPodHandler):
    """Serves requests by calling the functions that routes name."""

    _work: asyncio.Task[None] | None = None
    _gone = False
    _reads = False

    async def serve(self, route: Route, path: Mapping[str, str]) -> None:
        """Serve one request."""
        # Polling a list is not activity: the server may be stopped when idle.
        self._track_activity = route.verb != "get"
        self._reads = route.reads or route.verb == "get"
        self._work = asyncio.ensure_future(self._serve(route, path))
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._gone:
                raise

    def on_connection_close(self) -> None:
        """The client has disconnected: cancel read-only work."""
        super().on_connection_close()
        self._gone = True
        if self._work is not None and self._reads:
            self._work.cancel()

    async def _serve(self, route: Route, path: Mapping[str, str]) -> None:
        self.process.mark_active()
        endpoint = await asyncio.to_thread(endpoint_of, route)
        parameters = await asyncio.to_thread(_read_request, endpoint, self.request.query_arguments, self.request.body)
        assert self.current_user is not None
        call = Call(self.process, self._root(), self.current_user.username)
        result = await endpoint.function(call, **path, **parameters)
        if isinstance(result, Download):
            await self._send(result)
            return
        data = await asyncio.to_thread(to_json, result, endpoint.answer)
        self.set_status(call.status)
        with contextlib.suppress(StreamClosedError):  # the client has disconnected
            await self.finish(data)

    async def _send(self, download: Download) -> None:
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{download.name}"')
        chunks = download.chunks
        assert isinstance(chunks, AsyncGeneratorType)
        async with aclosing(chunks):
            async for chunk in chunks:
                self.write(chunk)
                try:
                    await self.flush()
                except StreamClosedError:  # the client has disconnected
                    return
        await self.finish(set_content_type="application/octet-stream")

    def _root(self) -> Path:
        root = getattr(self.contents_manager, "root_dir", None)
        return Path(root or self.settings["server_root_dir"]).expanduser()


def _read_request(endpoint: Endpoint, arguments: Mapping[str, list[bytes]], body: bytes) -> dict[str, Any]:
    """Parse the query and the body. Slow for a large body."""
    from hyperpod_jlab.server.requests import read_body, read_query

    parameters: dict[str, Any] = {}
    query = read_query(endpoint.query, arguments)
    if endpoint.query is not None:
        parameters["query"] = query
    if endpoint.body is not None:
        parameters["body"] = read_body(endpoint.body, body)
    return parameters


def _verb(route: Route) -> Callable[..., Coroutine[Any, Any, None]]:
    async def answer(self: EndpointHandler, **path: str) -> None:
        await self.serve(route, path)

    answer.__name__ = route.verb
    return guarded(route.action)(answer)


def handlers(routes: Iterable[Route] = ROUTES) -> list[tuple[str, type[EndpointHandler]]]:
    """One tornado handler class per path, with all its verbs, each guarded by its own action."""
    paths: dict[str, list[Route]] = {}
    for route in routes:
        paths.setdefault(route.path, []).append(route)
    return [(f"{API_PREFIX}/{path_routes[0].pattern}", _handler(path_routes)) for path_routes in paths.values()]


def _handler(routes: list[Route]) -> type[EndpointHandler]:
    content: dict[str, Any] = {route.verb: _verb(route) for route in routes}
    return type("RouteHandler", (EndpointHandler,), content)
