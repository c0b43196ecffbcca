"""Requests to one API server, and its answers as data."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, TypeAlias

import httpx

from hyperpod_jlab.model.errors import ConflictError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.access import Access
from hyperpod_jlab.orchestrators.kubernetes.api.complaints import refusal
from hyperpod_jlab.orchestrators.kubernetes.api.connections import (
    AT_ONCE,
    OPENING,
    StreamPools,
    answer_broken,
    not_sent,
    pool,
    shown_server,
    stream_cut,
)
from hyperpod_jlab.orchestrators.kubernetes.api.pages import ACCEPT, Form, Listing, Pages

__all__ = ["KubeClient", "Patch", "Stream", "refusal"]

PATIENCE = 10.0
"""Seconds that a request may be put off by a server that asks to wait."""
_HEADERS_LAST = 10.0
"""Seconds for which the headers of a request are used again; tokens are renewed minutes before their end."""
_OPENING = 60.0
"""Seconds in which a stream must begin: a dead node is reported after up to 14 s (research)."""
_LARGE = 200_000
"""Bytes of an answer above which it is read in a thread."""
_LONGEST_REFUSAL = 64_000
_ENDING = 0.25
"""Seconds in which requests that nobody waits for any more may end by themselves, when all is closed."""

Patch: TypeAlias = Literal["merge", "json", "strategic"]
PatchBody: TypeAlias = Mapping[str, Any] | list[Any]
_PATCHES: Mapping[Patch, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Stream:
    """An answer that goes on."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes as they come; a clean end ends them.

        Raises:
            UnreachableError: With the code ``cut``: the connection was cut.
        """
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except (httpx.TransportError, httpx.StreamError) as error:
            raise stream_cut(error) from error


class KubeClient:
    """Requests to one API server.

    All methods raise `UnreachableError` when it does not answer (with the code ``answer_lost`` when what was asked for may have been done all the same),
    `DeniedError`, `NotFoundError`, `ConflictError` and `RefusedError` as it says (see `complaints`). Keyword arguments are the query's: ``dryRun="All"``,
    ``fieldValidation="Strict"``, ``labelSelector=...``.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self._http = pool(access)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._opening = asyncio.Semaphore(OPENING)
        self._streams = StreamPools(access)
        self._extensions = (
            {"sni_hostname": access.server_name} if access.server_name is not None else {}
        )
        self._headers: tuple[float, dict[str, str]] | None = None
        self._renewing = asyncio.Lock()
        self._asking: set[asyncio.Task[Any]] = set()

    async def get(self, path: str, *, accept: str = ACCEPT["json"], **query: str) -> dict[str, Any]:
        """Read an object."""
        answer = await self._send("GET", path, query, accept=accept)
        return await _decoded(answer)

    async def list(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        form: Form = "json",
        limit: int = 250,
        **more: str,
    ) -> Listing:
        """Read all of a list, page by page (see `pages` for lists that need not lie in memory as a whole)."""
        listing = Listing()
        async for page in self.pages(path, query, form=form, limit=limit, **more):
            listing.add(page)
        return listing

    async def pages(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        form: Form = "json",
        limit: int = 250,
        **more: str,
    ) -> AsyncGenerator[Listing, None]:
        """Read a list in pages of about a megabyte, so that decoding none of them holds up the event loop.

        Args:
            path: Of the list.
            query: Selectors, ``includeObject``.
            form: ``json``: whole objects; ``table``: the columns that kubectl shows; ``metadata``: the objects' metadata.
            limit: Items of the first page.
            more: More of the query.
        """
        pages = Pages(limit)
        while not pages.done:
            asked = {**(query or {}), **more, **pages.query()}
            try:
                answer = await self._send("GET", path, asked, accept=ACCEPT[form])
            except ConflictError as error:
                if not pages.again(error):
                    raise
                continue
            yield pages.take(await _decoded(answer), len(answer.content))

    async def post(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Make an object."""
        return await _decoded(await self._send("POST", path, query, body))

    async def put(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Write an object anew; its ``resourceVersion`` must be the one that is there."""
        return await _decoded(await self._send("PUT", path, query, body))

    async def patch(
        self,
        path: str,
        body: PatchBody,
        *,
        kind: Patch = "merge",
        **query: str,
    ) -> dict[str, Any]:
        """Change an object."""
        return await _decoded(await self._send("PATCH", path, query, body, content=_PATCHES[kind]))

    async def delete(
        self, path: str, body: Mapping[str, Any] | None = None, **query: str
    ) -> dict[str, Any]:
        """Remove an object; `body` may be a ``DeleteOptions`` (with preconditions)."""
        return await _decoded(await self._send("DELETE", path, query, body))

    @asynccontextmanager
    async def stream(self, path: str, **query: str) -> AsyncIterator[Stream]:
        """Read an answer that goes on, over a connection of its own."""
        streams = self._streams.take()
        response = None
        try:
            response = await self._open(streams, path, query)
            if response.status_code == 401:
                await response.aclose()
                await self._renew()
                response = await self._open(streams, path, query)
            if not response.is_success:
                raise refusal(response.status_code, await _text(response), path=path)
            yield Stream(response)
        finally:
            if response is not None:
                await response.aclose()
            self._streams.give_back(streams)

    async def close(self) -> None:
        """Close all connections.

        Of many questions asked at once the others go on when one has failed. They are given a moment to fail too: where the event loop's end breaks off what was
        only about to connect, anyio (4.16) warns of a coroutine that was never awaited.
        """
        if left := self._asking - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=_ENDING)
        await self._http.aclose()
        await self._streams.close()

    # ------------------------------------------------------------------------------------------ how

    async def headers(self) -> dict[str, str]:
        """Who we are, for requests that go another way (port-forward)."""
        known = self._headers
        if known is not None and time.monotonic() - known[0] <= _HEADERS_LAST:
            return known[1]
        async with self._renewing:
            newest = self._headers
            if newest is None or newest is known:  # else another request has just fetched them
                found = await asyncio.to_thread(self.access.headers)
                newest = self._headers = (time.monotonic(), found)
            return newest[1]

    async def _renew(self) -> None:
        """Fetch the credentials anew, once for all who were refused with the same ones."""
        before = self._headers
        async with self._renewing:
            if self._headers is before:
                await asyncio.to_thread(self.access.renew)
                found = await asyncio.to_thread(self.access.headers)
                self._headers = (time.monotonic(), found)

    async def _open(
        self, streams: httpx.AsyncClient, path: str, query: Mapping[str, str]
    ) -> httpx.Response:
        headers = {**await self.headers(), "Accept-Encoding": "identity"}
        request = streams.build_request(
            "GET", path, params=query, headers=headers, extensions=self._extensions
        )
        try:
            with self._noted():
                async with self._opening, asyncio.timeout(_OPENING):
                    return await streams.send(request, stream=True)
        except TimeoutError as error:
            raise UnreachableError(
                f"the API server at {shown_server(self.access)} does not answer in time",
                detail={"server": shown_server(self.access)},
            ) from error
        except httpx.TransportError as error:
            raise not_sent(error, self.access) or answer_broken(
                error, "GET", self.access
            ) from error

    async def _send(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Any = None,
        *,
        accept: str = ACCEPT["json"],
        content: str = "application/json",
    ) -> httpx.Response:
        """Ask; wait where the server says so, and prove anew who we are, once."""
        with self._noted():
            return await self._insist(verb, path, query, body, accept, content)

    async def _insist(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        accept: str,
        content: str,
    ) -> httpx.Response:
        end = time.monotonic() + PATIENCE
        renewed = broken = False
        while True:
            try:
                answer = await self._once(verb, path, query, body, accept, content)
            except httpx.TransportError as error:
                if (never := not_sent(error, self.access)) is not None:
                    raise never from error
                if verb != "GET" or broken:
                    raise answer_broken(error, verb, self.access) from error
                broken = True  # a kept connection that the other side has closed, say
                continue
            if answer.is_success:
                return answer
            if answer.status_code == 401 and not renewed:
                await self._renew()
                renewed = True
                continue
            wait = _asked_to_wait(answer, verb)
            if wait is None or time.monotonic() + wait > end:
                raise refusal(answer.status_code, answer.text, verb=verb, path=path)
            await asyncio.sleep(wait)

    async def _once(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        accept: str,
        content: str,
    ) -> httpx.Response:
        headers = {**await self.headers(), "Accept": accept}
        data = None
        if body is not None:
            headers["Content-Type"] = content
            data = json.dumps(body).encode()
        async with self._slots:
            return await self._http.request(
                verb, path, params=query, content=data, headers=headers, extensions=self._extensions
            )

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note that this task waits for an answer."""
        task = asyncio.current_task()
        assert task is not None
        self._asking.add(task)
        try:
            yield
        finally:
            self._asking.discard(task)


def _asked_to_wait(answer: httpx.Response, verb: str) -> float | None:
    """Seconds after which the server wants to be asked again; what it refused with 429 it has not begun, so that this holds for every verb."""
    if answer.status_code != 429 and not (answer.status_code == 503 and verb == "GET"):
        return None
    try:
        return max(0.1, float(answer.headers.get("Retry-After", "")))
    except ValueError:
        return 1.0 if answer.status_code == 429 else None


async def _decoded(answer: httpx.Response) -> dict[str, Any]:
    data = answer.content
    try:
        found = (
            await asyncio.to_thread(json.loads, data) if len(data) > _LARGE else json.loads(data)
        )
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UnreachableError(
            "what answers is no Kubernetes API server",
            code="no_api_server",
            hint="look at the server's address and the proxy in the kubeconfig",
            detail={"type": answer.headers.get("Content-Type", "")[:80]},
        )
    return found


async def _text(response: httpx.Response) -> str:
    """The beginning of a refusal's text."""
    found = b""
    try:
        async for chunk in response.aiter_bytes():
            found += chunk
            if len(found) > _LONGEST_REFUSAL:
                break
    except httpx.TransportError:
        pass  # the status says enough
    return found.decode("utf-8", "replace")
