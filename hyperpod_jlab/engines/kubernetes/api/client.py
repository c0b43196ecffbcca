"""Requests to one API server, and its responses as data."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from hyperpod_jlab.core.errors import ConflictError, HyperpodError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess
from hyperpod_jlab.engines.kubernetes.api.errors import ANSWER_LOST, STREAM_CUT, parse_error
from hyperpod_jlab.engines.kubernetes.api.light_httpx import httpx

# --------------------------------------------------------------------------------------------------
# Lists from the API server, page by page, in one of its response formats.

Form: TypeAlias = Literal["json", "table", "metadata"]
_META = "v=v1;g=meta.k8s.io"
ACCEPT: Mapping[Form, str] = {
    "json": "application/json",
    # Plain JSON is the fallback: an aggregated API server may not support tables.
    "table": f"application/json;as=Table;{_META},application/json",
    "metadata": f"application/json;as=PartialObjectMetadataList;{_META},application/json;as=PartialObjectMetadata;{_META},application/json",
}
_BYTES = 1_000_000
"""Bytes per page. Decoding takes about 10 ms for each page, during which nothing else runs."""
_MIN_PAGE, _MAX_PAGE = 20, 2000


@dataclass
class ListPage:
    """A list, or a page of one.

    Attributes:
        items: The objects, or a table's rows (``cells``, and ``object`` according to
            ``includeObject``).
        columns: The names of a table's columns.
        version: The list's resource version, from which a watch can continue.
    """

    items: list[dict[str, Any]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    version: str = ""

    def add(self, page: ListPage) -> None:
        """Append the next page."""
        self.items += page.items
        self.columns = self.columns or page.columns
        self.version = page.version


class Pages:
    """Tracks which page to request next."""

    def __init__(self, limit: int) -> None:
        self.is_done = False
        self._limit = limit
        self._next_token = ""
        self._is_complete = False

    def query(self) -> dict[str, str]:
        """The query for the next page."""
        if self._is_complete:
            return {}
        parameters = {"limit": str(self._limit)}
        return parameters | {"continue": self._next_token} if self._next_token else parameters

    def restart(self, error: ConflictError) -> bool:
        """Whether to continue after an error: the list's resource version may have expired, and the server then returns a new continue token."""
        if error.code != "expired" or not self._next_token:
            return False
        continue_token = str(error.detail.get("continue") or "")
        if not continue_token or continue_token == self._next_token:
            return False
        self._next_token = continue_token
        return True

    def add_page(self, document: Mapping[str, Any], size: int) -> ListPage:
        """Add a page of this many bytes."""
        metadata = document.get("metadata") or {}
        table = document.get("kind") == "Table"
        items = (document.get("rows") if table else document.get("items")) or []
        columns = [str(column["name"]) for column in document.get("columnDefinitions") or []]
        self._next_token = str(metadata.get("continue") or "")
        self.is_done = not self._next_token
        if items:
            fitting = int(_BYTES / max(1, size / len(items)))
            self._limit = min(_MAX_PAGE, max(_MIN_PAGE, fitting))
        return ListPage(list(items), columns, str(metadata.get("resourceVersion") or ""))


# --------------------------------------------------------------------------------------------------
# How connections to an API server are managed, and what their failures mean.

_TIMEOUT = httpx.Timeout(30.0, connect=10.0, pool=30.0)
_STREAMING = httpx.Timeout(None, connect=10.0)
CONCURRENCY = 10
"""Concurrent requests. More callers wait before the pool, because the pool searches its own queue at each step of each request."""
OPENING = 64
"""Streams that open at the same time: with five hundred handshakes at once, the last ones would time out."""
# All connections are kept; otherwise each of a hundred concurrent requests would open a new one.
_REQUESTS = httpx.Limits(max_connections=None, max_keepalive_connections=CONCURRENCY, keepalive_expiry=20.0)
_NO_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=0)
_STREAMS_PER_CLIENT = 16
"""Streams per pool."""
_KEEPALIVE_OPTIONS: tuple[tuple[str, int], ...] = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A stream may be silent for days, so TCP keep-alive checks the peer: after 30 s without a response the stream is cut."""


def pool(access: ApiAccess) -> httpx.AsyncClient:
    """The pool for ordinary requests."""
    return _client(access, _TIMEOUT, _REQUESTS)


class StreamPools:
    """Pools for streams: any number of them, so that no stream waits for another.

    A pool scans all of its connections at each opening and closing, so several small pools are
    used.
    """

    def __init__(self, access: ApiAccess) -> None:
        self._access = access
        self._pools: dict[httpx.AsyncClient, int] = {}

    def acquire(self) -> httpx.AsyncClient:
        """A client for one stream; release it afterwards."""
        pooled_client = next((client for client, streams in self._pools.items() if streams < _STREAMS_PER_CLIENT), None)
        if pooled_client is None:
            pooled_client = _client(self._access, _STREAMING, _NO_CONNECTIONS)
            self._pools[pooled_client] = 0
        self._pools[pooled_client] += 1
        return pooled_client

    def release(self, client: httpx.AsyncClient) -> None:
        """Release the client of an ended stream."""
        if client in self._pools:
            self._pools[client] -= 1

    async def close(self) -> None:
        pools, self._pools = self._pools, {}
        for client in pools:
            await client.aclose()


def _client(access: ApiAccess, timeout: httpx.Timeout, limits: httpx.Limits) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(
        verify=access.verify, limits=limits, proxy=access.proxy, socket_options=_options(), trust_env=False
    )
    return httpx.AsyncClient(
        base_url=access.server,
        transport=transport,
        timeout=timeout,
        trust_env=False,  # the kubeconfig sets the proxy; netrc is for other programs
        headers={"User-Agent": "hyperpod-jlab"},
    )


def _options() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    for name, value in _KEEPALIVE_OPTIONS:
        option = getattr(socket, name, None)  # not available on every platform
        if option is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    return options


def connect_error(error: httpx.TransportError, access: ApiAccess) -> HyperpodError | None:
    """The error for a request that certainly did not reach the server; None when it may have."""
    if not isinstance(
        error,
        httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError | httpx.UnsupportedProtocol,
    ):
        return None
    message, code, hint = _connecting(error, access)
    return UnreachableError(message, code=code, hint=hint, detail={"server": format_server_url(access)})


def _connecting(error: httpx.TransportError, access: ApiAccess) -> tuple[str, str | None, str]:
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the API server's certificate is not the expected one: {cause.verify_message}",
            "certificate",
            "the certificate-authority or the server of the kubeconfig is wrong or outdated; download the kubeconfig again",
        )
    if isinstance(cause, ssl.SSLError):
        return (
            f"no secure connection to the API server: {cause.reason or 'it does not use TLS'}",
            "tls",
            "check the server, the client certificate and the proxy in the kubeconfig",
        )
    if isinstance(cause, socket.gaierror):
        return (
            f"the host name of the API server at {format_server_url(access)} cannot be resolved",
            "dns",
            "check the connection to the network of the cluster (VPN, VPC); a private EKS endpoint resolves only in its VPC",
        )
    if isinstance(error, httpx.ProxyError):
        return ("the proxy denied the connection", "proxy", "check proxy-url and HTTPS_PROXY")
    if isinstance(error, httpx.UnsupportedProtocol):
        return ("the address of the API server is not valid", "address", "check server in the kubeconfig")
    problem_text = "did not answer" if isinstance(error, httpx.TimeoutException) else "cannot be reached"
    proxy_text = " through the proxy" if access.proxy else ""
    return (
        f"the API server at {format_server_url(access)} {problem_text}{proxy_text}",
        None,
        "see: kubectl cluster-info",
    )


def format_server_url(access: ApiAccess) -> str:
    """The server's address for messages, without secrets."""
    try:
        parts = urlsplit(access.server)
    except ValueError:
        return access.server.rpartition("@")[2][:_MAX_TEXT]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:_MAX_TEXT]


_MAX_TEXT = 300
"""Maximum length of a displayed address."""


def _cause(error: BaseException) -> BaseException:
    """The root cause."""
    inner: Any = error.__cause__ or error.__context__
    while inner is not None and not isinstance(error, ssl.SSLError | socket.gaierror):
        error, inner = inner, inner.__cause__ or inner.__context__
    return error


def response_error(error: httpx.TransportError, verb: str, access: ApiAccess) -> UnreachableError:
    """The error for a request whose response did not arrive, or not completely."""
    is_timeout = isinstance(error, httpx.TimeoutException)
    problem_text = "timed out" if is_timeout else "closed the connection before the answer was complete"
    return UnreachableError(
        f"the API server at {format_server_url(access)} {problem_text}",
        code=None if verb == "GET" else ANSWER_LOST,
        hint="see: kubectl cluster-info",
        detail={"server": format_server_url(access)},
    )


def stream_error(error: Exception) -> UnreachableError:
    """The error for a stream that ended early."""
    return UnreachableError("the connection was cut", code=STREAM_CUT, detail={"by": type(error).__name__})


__all__ = ["KubeClient", "Patch", "ResponseStream", "parse_error"]

TIMEOUT = 10.0
"""Maximum delay in seconds of a request when the server asks to wait."""
_HEADERS_TTL_S = 10.0
"""Seconds for which request headers are cached; tokens are renewed minutes before they expire."""
_OPENING = 60.0
"""Seconds within which a stream must begin: a dead node is reported after up to 14 s (research)."""
_LARGE = 200_000
"""Size of a response in bytes above which it is parsed in a thread."""
_MAX_ERROR_BYTES = 64_000
_CLOSE_WAIT_S = 0.25
"""Seconds in which abandoned requests may end by themselves on close."""

Patch: TypeAlias = Literal["merge", "json", "strategic"]
PatchBody: TypeAlias = Mapping[str, Any] | list[Any]
_PATCHES: Mapping[Patch, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class ResponseStream:
    """A streaming response."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes as they arrive, until a clean end.

        Raises:
            UnreachableError: With the code ``cut``: the connection was cut.
        """
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except (httpx.TransportError, httpx.StreamError) as error:
            raise stream_error(error) from error


class KubeClient:
    """Requests to one API server.

    All methods raise `UnreachableError` when the server does not answer (with the code
    ``answer_lost`` if the request may have been applied), and `DeniedError`, `NotFoundError`,
    `ConflictError` and `RefusedError` according to its response (see `errors`). Keyword arguments
    become query parameters: ``dryRun="All"``,
    ``fieldValidation="Strict"``, ``labelSelector=...``.
    """

    def __init__(self, access: ApiAccess) -> None:
        self.access = access
        self._http = pool(access)
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._opening = asyncio.Semaphore(OPENING)
        self._streams = StreamPools(access)
        self._extensions = {"sni_hostname": access.server_name} if access.server_name is not None else {}
        self._headers: tuple[float, dict[str, str]] | None = None
        self._renewing = asyncio.Lock()
        self._active: set[asyncio.Task[Any]] = set()

    async def get(self, path: str, *, accept: str = ACCEPT["json"], **query: str) -> dict[str, Any]:
        """Read an object."""
        response = await self._send("GET", path, query, accept=accept)
        return await _decode(response)

    async def list(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        form: Form = "json",
        limit: int = 250,
        **query_parameters: str,
    ) -> ListPage:
        """Read a whole list, page by page (use `pages` to avoid holding it in memory)."""
        listing = ListPage()
        async for page in self.pages(path, query, form=form, limit=limit, **query_parameters):
            listing.add(page)
        return listing

    async def pages(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        form: Form = "json",
        limit: int = 250,
        **query_parameters: str,
    ) -> AsyncGenerator[ListPage, None]:
        """Read a list in pages of about a megabyte, so that decoding one does not block the event loop.

        Args:
            path: The list's path.
            query: Selectors, ``includeObject``.
            form: ``json``: whole objects; ``table``: the columns that kubectl shows; ``metadata``:
                the objects' metadata.
            limit: Items of the first page.
            query_parameters: More query parameters.
        """
        pages = Pages(limit)
        while not pages.is_done:
            parameters = {**(query or {}), **query_parameters, **pages.query()}
            try:
                response = await self._send("GET", path, parameters, accept=ACCEPT[form])
            except ConflictError as error:
                if not pages.restart(error):
                    raise
                continue
            yield pages.add_page(await _decode(response), len(response.content))

    async def post(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Create an object."""
        return await _decode(await self._send("POST", path, query, body))

    async def put(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Replace an object; its ``resourceVersion`` must be current."""
        return await _decode(await self._send("PUT", path, query, body))

    async def patch(self, path: str, body: PatchBody, *, kind: Patch = "merge", **query: str) -> dict[str, Any]:
        return await _decode(await self._send("PATCH", path, query, body, content=_PATCHES[kind]))

    async def delete(self, path: str, body: Mapping[str, Any] | None = None, **query: str) -> dict[str, Any]:
        """Delete an object; `body` may be a ``DeleteOptions`` (with preconditions)."""
        return await _decode(await self._send("DELETE", path, query, body))

    @asynccontextmanager
    async def stream(self, path: str, **query: str) -> AsyncIterator[ResponseStream]:
        """Read a streaming response over its own connection."""
        streams = self._streams.acquire()
        response = None
        try:
            response = await self._open(streams, path, query)
            if response.status_code == 401:
                await response.aclose()
                await self._renew()
                response = await self._open(streams, path, query)
            if not response.is_success:
                raise parse_error(response.status_code, await _text(response), path=path)
            yield ResponseStream(response)
        finally:
            if response is not None:
                await response.aclose()
            self._streams.release(streams)

    async def close(self) -> None:
        """Close all connections.

        When one of many concurrent requests fails, the others continue. They get a moment to fail
        too: if the event loop ends while one is about to connect, anyio (4.16) warns of a coroutine
        that was never awaited.
        """
        if remaining := self._active - {asyncio.current_task()}:
            await asyncio.wait(remaining, timeout=_CLOSE_WAIT_S)
        await self._http.aclose()
        await self._streams.close()

    # ------------------------------------------------------------------------------------------ how

    async def headers(self) -> dict[str, str]:
        """The authentication headers, for requests outside of this client (port-forward)."""
        known_headers = self._headers
        if known_headers is not None and time.monotonic() - known_headers[0] <= _HEADERS_TTL_S:
            return known_headers[1]
        async with self._renewing:
            newest = self._headers
            if newest is None or newest is known_headers:  # otherwise another request has just renewed them
                headers = await asyncio.to_thread(self.access.headers)
                newest = self._headers = (time.monotonic(), headers)
            return newest[1]

    async def _renew(self) -> None:
        """Renew the credentials, once for all requests that were rejected with the same ones."""
        previous_headers = self._headers
        async with self._renewing:
            if self._headers is previous_headers:
                await asyncio.to_thread(self.access.renew)
                headers = await asyncio.to_thread(self.access.headers)
                self._headers = (time.monotonic(), headers)

    async def _open(self, streams: httpx.AsyncClient, path: str, query: Mapping[str, str]) -> httpx.Response:
        headers = {**await self.headers(), "Accept-Encoding": "identity"}
        request = streams.build_request("GET", path, params=query, headers=headers, extensions=self._extensions)
        try:
            with self._track():
                async with self._opening, asyncio.timeout(_OPENING):
                    return await streams.send(request, stream=True)
        except TimeoutError as error:
            raise UnreachableError(
                f"the API server at {format_server_url(self.access)} timed out",
                detail={"server": format_server_url(self.access)},
            ) from error
        except httpx.TransportError as error:
            raise connect_error(error, self.access) or response_error(error, "GET", self.access) from error

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
        """Send a request; wait if the server says so, and renew the credentials once."""
        with self._track():
            return await self._send_with_retries(verb, path, query, body, accept, content)

    async def _send_with_retries(
        self, verb: str, path: str, query: Mapping[str, str], body: Any, accept: str, content: str
    ) -> httpx.Response:
        end = time.monotonic() + TIMEOUT
        is_renewed = is_broken = False
        while True:
            try:
                response = await self._send_once(verb, path, query, body, accept, content)
            except httpx.TransportError as error:
                if (connection_error := connect_error(error, self.access)) is not None:
                    raise connection_error from error
                if verb != "GET" or is_broken:
                    raise response_error(error, verb, self.access) from error
                is_broken = True  # for example a kept connection that the server has closed
                continue
            if response.is_success:
                return response
            if response.status_code == 401 and not is_renewed:
                await self._renew()
                is_renewed = True
                continue
            retry_after = _retry_after(response, verb)
            if retry_after is None or time.monotonic() + retry_after > end:
                raise parse_error(response.status_code, response.text, verb=verb, path=path)
            await asyncio.sleep(retry_after)

    async def _send_once(
        self, verb: str, path: str, query: Mapping[str, str], body: Any, accept: str, content: str
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
    def _track(self) -> Iterator[None]:
        """Track this task's pending request."""
        task = asyncio.current_task()
        assert task is not None
        self._active.add(task)
        try:
            yield
        finally:
            self._active.discard(task)


def _retry_after(response: httpx.Response, verb: str) -> float | None:
    """Seconds until the server accepts a retry; it has not processed a request that it rejects with 429, so any verb may be retried."""
    if response.status_code != 429 and not (response.status_code == 503 and verb == "GET"):
        return None
    try:
        return max(0.1, float(response.headers.get("Retry-After", "")))
    except ValueError:
        return 1.0 if response.status_code == 429 else None


async def _decode(response: httpx.Response) -> dict[str, Any]:
    data = response.content
    try:
        document = await asyncio.to_thread(json.loads, data) if len(data) > _LARGE else json.loads(data)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnreachableError(
            "the server that answered is not a Kubernetes API server",
            code="no_api_server",
            hint="check the server and the proxy in the kubeconfig",
            detail={"type": response.headers.get("Content-Type", "")[:80]},
        )
    return document


async def _text(response: httpx.Response) -> str:
    """The start of an error response's text."""
    data = b""
    try:
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > _MAX_ERROR_BYTES:
                break
    except httpx.TransportError:
        pass  # the status is enough
    return data.decode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------
# Exponential back-off with jitter.


class Backoff:
    """Doubles from `first` to `max_pause` seconds, plus or minus a quarter, so that clients that failed together do not retry together."""

    def __init__(self, first: float, max_pause: float) -> None:
        self._first_pause, self._max_pause = first, max_pause
        self._next_pause = first

    def next_pause(self) -> float:
        """The next pause in seconds."""
        pause = self._next_pause
        self._next_pause = min(self._max_pause, pause * 2)
        return pause * random.uniform(0.75, 1.25)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Reset after a success."""
        self._next_pause = self._first_pause
