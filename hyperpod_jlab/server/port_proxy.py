"""Reverse proxy for ports of a running run's nodes, such as TensorBoard, in a browser tab: HTTP and WebSocket.

Connects only to nodes of the named run, with this server's permissions on the cluster. The key in the URL authenticates requests (see
`port_keys`): the program's pages are sandboxed, so the browser sends no cookies for them, and this module reads none.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.server.base import API_PREFIX, AUTH_RESOURCE, ErrorShape, guarded, process_of
from hyperpod_jlab.server.port_keys import (
    SCRIPT_PATH,
    PageStart,
    PortAddress,
    PortSession,
    denied_error,
    is_html,
    page_script,
    parse_address,
)

if TYPE_CHECKING:
    import httpcore
    from tornado.iostream import IOStream


# --------------------------------------------------------------------------------------------------
# Request and response headers: Jupyter's secrets are removed, and the program's headers affect only
# its own page.

SANDBOX: Final = "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads"
"""The Content-Security-Policy of every response.

Without ``allow-same-origin`` a page has an opaque origin: no cookies, no storage, no access to Jupyter's pages or API. This also holds for
frames and pop-ups that the page opens. There is no ``frame-ancestors``: an opaque origin never matches it, so a program could not show
its own frames, and without the key there is nothing to frame.
"""

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_DROPPED_REQUEST_HEADERS = frozenset(
    {"authorization", "content-length", "cookie", "host", "origin", "referer", "x-xsrftoken"}
    # To the program its own page is same-origin; it does not know about the sandbox.
    | {"sec-fetch-site"}
)
_DROPPED_RESPONSE_HEADERS = frozenset(
    {
        # These would apply to all of Jupyter's origin, or outlive the run:
        "accept-ch",
        "alt-svc",
        "clear-site-data",
        "critical-ch",
        "expect-ct",
        "nel",
        "origin-agent-cluster",
        "public-key-pins",
        "public-key-pins-report-only",
        "report-to",
        "reporting-endpoints",
        "service-worker-allowed",
        "set-cookie",
        "strict-transport-security",
        "www-authenticate",
        # Who may read, frame or open the page is set here; the program's values would be wrong for
        # a sandboxed page:
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "access-control-allow-methods",
        "access-control-allow-origin",
        "access-control-allow-private-network",
        "access-control-expose-headers",
        "access-control-max-age",
        "cross-origin-embedder-policy",
        "cross-origin-embedder-policy-report-only",
        "cross-origin-opener-policy",
        "cross-origin-opener-policy-report-only",
        "cross-origin-resource-policy",
        "link",
        "referrer-policy",
        "x-frame-options",
    }
)

_Headers = Iterable[tuple[str, str]]


def request_headers(
    headers: _Headers, port: int, prefix: str, cookies: str, *, plain: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """A request's headers for the program, as if the request came from its own machine.

    Args:
        headers: The browser's headers. Jupyter's cookies, token and addresses are removed.
        port: The program's port.
        prefix: The path under which the browser sees the program.
        cookies: The program's cookies, ``""`` for none.
        plain: Request an uncompressed body.
    """
    local_host = f"localhost:{port}"
    yield b"Host", local_host.encode()
    yield b"X-Forwarded-Prefix", prefix.encode("latin-1", "replace")
    if cookies:
        yield b"Cookie", cookies.encode("latin-1", "replace")
    for name, value in headers:
        lower_name = name.lower()
        if lower_name == "origin":
            yield b"Origin", f"http://{local_host}".encode()
        elif lower_name == "accept-encoding" and plain:
            yield b"Accept-Encoding", b"identity"
        elif lower_name not in _HOP_BY_HOP | _DROPPED_REQUEST_HEADERS:
            yield name.encode("latin-1"), value.encode("latin-1", "replace")


def response_headers(
    headers: Iterable[tuple[bytes, bytes]], port: int, prefix: str
) -> Iterator[tuple[str, str]]:
    """A response's headers for the browser: only those that affect the program's own page."""
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        lower_name = name.lower()
        if lower_name == "location":
            yield name, _location(value, port, prefix)
        elif lower_name == "content-security-policy":
            yield from ((name, policy) for policy in _program_policy(value))
        elif lower_name not in _HOP_BY_HOP | _DROPPED_RESPONSE_HEADERS:
            yield name, value


def set_cookie_values(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """The ``Set-Cookie`` values of a response."""
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"set-cookie"]


def cors_headers(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """CORS headers that let a sandboxed page read its own program's responses: its origin is ``null``."""
    yield "Access-Control-Allow-Origin", "null"
    yield "Access-Control-Allow-Credentials", "true"
    if header_names := ", ".join(sorted(set(names))):
        yield "Access-Control-Expose-Headers", header_names


def _program_policy(value: str) -> Iterator[str]:
    """A program's policies without ``frame-ancestors`` (see `SANDBOX`), plus the workers of our page script (see `port_keys.page_script`)."""
    for policy in value.split(","):
        rules: dict[str, list[str]] = {}
        for rule in policy.split(";"):
            if tokens := rule.split():
                rules.setdefault(tokens[0].lower(), tokens[1:])
        rules.pop("frame-ancestors", None)
        for name in ("worker-src", "child-src", "script-src", "default-src"):
            if name in rules:
                sources = [token for token in rules[name] if token.lower() != "'none'"]
                rules["worker-src"] = [*sources, "blob:"]
                break
        if rules:
            yield "; ".join(" ".join([name, *sources]) for name, sources in rules.items())


def _location(value: str, port: int, prefix: str) -> str:
    """Rewrite a redirect to the program itself to the proxy; leaves others unchanged."""
    parts = urlsplit(value)
    local_hosts = {f"localhost:{port}", f"127.0.0.1:{port}", ""}
    if parts.netloc not in local_hosts or not parts.path.startswith("/"):
        return value
    rest = parts._replace(scheme="", netloc="", path=prefix + parts.path[1:])
    return rest.geturl()


# --------------------------------------------------------------------------------------------------
# Shared by both port handlers: every response, including errors, is sandboxed, and no secret of a
# URL is logged.

PORT_PATTERN: Final = rf"{API_PREFIX}/runs/(?P<run_id>[^/]+)/ports/(?P<port>[^/]+)"
"""The path of a port."""
KEY_MARK: Final = "~"
"""Precedes the key in a URL."""

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em">
<h1 style="font-size: 1.3em">{title}</h1>
<p>{hint}</p>
</body>
</html>
"""


class SandboxedHandler(ExtensionHandlerMixin, ErrorShape, JupyterHandler):
    """Serves URLs below a port."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False  # pages poll on their own

    @property
    def content_security_policy(self) -> str:
        """No page below such a URL gets Jupyter's origin, whatever the configuration says."""
        return SANDBOX

    def set_default_headers(self) -> None:
        """Headers of every response; replaces Jupyter's defaults."""
        self.set_header("Content-Security-Policy", self.content_security_policy)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write a short page for a browser, the error shape for programs."""
        self.set_header("Cache-Control", "no-store")
        if not self.is_page:
            super().write_error(status_code, **kwargs)
            return
        error = (kwargs.get("exc_info") or (None, None))[1]
        if isinstance(error, HyperpodError):
            self.set_status(error.status)
            title, hint = error.message, error.hint or ""
        else:
            title, hint = HTTPStatus(status_code).phrase, str(getattr(error, "reason", "") or "")
        self.log.warning("%s %s: %s", self.request.method, self.request.path, title)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(_PAGE.format(title=html.escape(title), hint=html.escape(hint)))

    @property
    def is_page(self) -> bool:
        """Whether the browser requests a document for a tab or a frame."""
        headers = self.request.headers
        destination = headers.get("Sec-Fetch-Dest")
        if destination is not None:
            return destination in {"document", "iframe", "frame"}
        return self.request.method == "GET" and "text/html" in headers.get("Accept", "")

    def hide_path(self, path: str) -> None:
        """Replace the request's URL, since the server logs it, also with errors."""
        self.request.path = self.request.uri = path


KEY_PATTERN: Final = rf"{PORT_PATTERN}/{KEY_MARK}(?P<key>[^/]*)(?P<path>/.*)?"

_CHUNK = 65_536
_TIMEOUTS_S = {"connect": 30.0, "pool": 30.0}


class PortProxy(SandboxedHandler):
    """Forwards requests with a valid key to a port of a run's node."""

    _work: asyncio.Task[None] | None = None
    _gone = False

    async def prepare(self) -> None:  # type: ignore[override]  # as Jupyter's own APIHandler
        """No login here: neither Jupyter's cookies nor its token are read."""
        prefix, separator, suffix = self.request.path.partition(f"{API_PREFIX}/runs/")
        run_id, ports, port, key, *rest = suffix.split("/", 4)
        self._prefix = f"{prefix}{separator}{run_id}/{ports}/{port}/{key}/"
        self._rest = rest[0] if rest else None
        self.hide_path(f"{prefix}{separator}{run_id}/{ports}/{port}/{KEY_MARK}/{self._rest or ''}")
        self.current_user = None
        if not self.check_host():
            raise HTTPError(403)

    def set_default_headers(self) -> None:
        """Also lets the program's own page read the response."""
        super().set_default_headers()
        self.set_header("Vary", "Origin")
        if self.request.headers.get("Origin") == "null":
            for name, value in cors_headers(()):
                self.set_header(name, value)

    @allow_unauthenticated
    async def get(self, run_id: str, port: str, key: str, path: str | None) -> None:
        """Forward a request."""
        del path
        session = process_of(self).port_keys.find(key, parse_address(run_id, port))
        await self._check(session)
        if self._rest is None:  # relative URLs on the page need the slash
            query = f"?{self.request.query}" if self.request.query else ""
            self.redirect(f"{self._prefix}{query}")
            return
        if self._is_preflight():
            self._answer_preflight()
            return
        if self._rest == SCRIPT_PATH:
            self.set_header("Content-Type", "text/javascript; charset=utf-8")
            self.set_header("Cache-Control", "max-age=3600")
            self.finish(page_script())
            return
        self._work = asyncio.ensure_future(self._forward(session))
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._gone:
                raise

    post = put = patch = delete = head = options = get

    def check_xsrf_cookie(self) -> None:
        """Not needed: other sites do not know the key."""

    def compute_etag(self) -> str | None:
        """None: the program's own ETag is forwarded."""
        return None

    def on_connection_close(self) -> None:
        """The client has disconnected."""
        super().on_connection_close()
        self._gone = True
        if self._work is not None:
            self._work.cancel()

    async def _check(self, session: PortSession) -> None:
        """Check that the user who opened the port still has permission, and that the request comes from the program's own page."""
        self.current_user = session.user
        allowed = self.authorizer.is_authorized(self, session.user, "execute", AUTH_RESOURCE)
        if not await ensure_async(allowed):
            raise HTTPError(403)
        # The program's pages have the origin "null". Jupyter's own origin and other sites that
        # learned the key are rejected.
        if (self.get_origin() or "null").lower() != "null":
            raise HTTPError(403, reason="Requests from other sites are not forwarded")
        if self.request.headers.get("Service-Worker"):
            raise HTTPError(403, reason="Service workers are not supported on pages of a run")

    def _is_preflight(self) -> bool:
        has_request_method = "Access-Control-Request-Method" in self.request.headers
        return self.request.method == "OPTIONS" and has_request_method

    def _answer_preflight(self) -> None:
        """Handled here: the program considers its page same-origin."""
        headers = self.request.headers
        self.set_header("Access-Control-Allow-Methods", headers["Access-Control-Request-Method"])
        if requested := headers.get("Access-Control-Request-Headers"):
            self.set_header("Access-Control-Allow-Headers", requested)
        self.set_header("Access-Control-Max-Age", "600")
        self.set_status(204)
        self.finish()

    async def _forward(self, session: PortSession) -> None:
        address = session.address
        process = process_of(self)
        process.mark_active()
        hyperpod = await process.hyperpod()
        pool = (await _ports(self)).get(hyperpod, address.run_id, address.node, address.port)
        await process.ports.trim()
        upgrades = self.request.headers.get("Upgrade", "").lower() == "websocket"
        cookies = session.cookies.header_for(f"/{self._rest}")
        sent_headers = self.request.headers.get_all()
        headers = list(
            request_headers(sent_headers, address.port, self._prefix, cookies, plain=self.is_page)
        )
        if upgrades:
            headers += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
        with _translated_errors(address.port):
            answering = pool.stream(
                self.request.method or "GET",
                self._url(address),
                headers=headers,
                content=self.request.body or None,
                extensions={"timeout": _TIMEOUTS_S},
            )
            async with answering as response:
                for line in set_cookie_values(response.headers):
                    session.cookies.add_header(line)
                if response.status == 101 and upgrades:
                    await self._tunnel(response, address.port)
                else:
                    await self._send_response(response, address.port)

    async def _send_response(self, response: httpcore.Response, port: int) -> None:
        """Stream the program's response."""
        reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
        self.set_status(response.status, reason or None)
        self.clear_header("Content-Type")
        self.clear_header("Server")
        response_headers = [
            (name.lower(), name, value) for name, value in self._response_headers(response, port)
        ]
        for lower_name, name, value in response_headers:
            # The sandbox applies in addition to the program's own policy.
            (self.add_header if lower_name in _PRESERVED_HEADERS else self._join)(name, value)
        if self.request.headers.get("Origin") == "null":
            for name, value in cors_headers(name for _, name, _ in response_headers):
                self.set_header(name, value)
        start = self._page_start()
        try:
            async for chunk in response.aiter_stream():
                self.write(start.feed(chunk) if start else chunk)
                await self.flush()
            await self.finish(start.end() if start else None)
        except StreamClosedError:  # the client has disconnected
            return
        except Exception:  # raised again, unless the response has begun
            if (
                self._headers_written
            ):  # too late for an error response: the browser sees a truncated one
                self.log.warning("the answer of port %s of a run was cut", port)
                stream = self.detach()
                stream.close()
                return
            raise

    def _page_start(self) -> PageStart | None:
        """Inserts the script if the response is a page, and sets its new length."""
        kind, encoding, length = (
            self._headers.get(name, "")
            for name in ("Content-Type", "Content-Encoding", "Content-Length")
        )
        adds_script = self.is_page and self.request.method != "HEAD"
        if not adds_script or not is_html(self.get_status(), kind, encoding):
            return None
        start = PageStart(self._prefix)
        if length.isdecimal():
            self.set_header("Content-Length", str(int(length) + len(start.tag)))
        return start

    def _join(self, name: str, value: str) -> None:
        self.set_header(name, value) if name not in self._headers else self.add_header(name, value)

    async def _tunnel(self, response: httpcore.Response, port: int) -> None:
        """Join the two connections; frames are forwarded unchanged."""
        backend = response.extensions["network_stream"]
        lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"]
        lines += [f"{name}: {value}" for name, value in self._response_headers(response, port)]
        browser = self.detach()
        closing = _ClosableStream(browser)
        sockets = process_of(self).sockets
        sockets.add(closing)
        with contextlib.suppress(StreamClosedError):
            try:
                await browser.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
                await _join_streams(browser, backend)
            finally:
                sockets.discard(closing)
                browser.close()

    def _response_headers(self, response: httpcore.Response, port: int) -> list[tuple[str, str]]:
        return list(response_headers(response.headers, port, self._prefix))

    def _url(self, address: PortAddress) -> httpcore.URL:
        import httpcore

        # A pasted URL may have Jupyter's token, which is not for the program.
        token = self.identity_provider.token
        parameters = self.request.query.split("&")
        kept_query = "&".join(
            parameter for parameter in parameters if not (token and parameter == f"token={token}")
        )
        query = f"?{kept_query}" if kept_query else ""
        return httpcore.URL(
            scheme=b"http",
            host=b"localhost",
            port=address.port,
            target=f"/{self._rest}{query}".encode("latin-1", "replace"),
        )


_PRESERVED_HEADERS = frozenset({"content-security-policy", "vary"})


class _ClosableStream:
    """A joined connection that is closed when the server stops."""

    def __init__(self, stream: IOStream) -> None:
        self._stream = stream

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        del code, reason
        self._stream.close()


async def _join_streams(browser: IOStream, backend: Any) -> None:
    async def up() -> None:
        while True:
            await backend.write(await browser.read_bytes(_CHUNK, partial=True))

    async def down() -> None:
        while data := await backend.read(_CHUNK):
            await browser.write(data)

    tasks = [asyncio.ensure_future(up()), asyncio.ensure_future(down())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ports(handler: PortProxy) -> Any:
    """The pools; imports their dependencies on first use."""
    from importlib import import_module

    try:
        await asyncio.to_thread(import_module, "hyperpod_jlab.server.port_pools")
    except ImportError:
        raise UnsupportedError(
            "forwarding a port of a run needs a package that is not installed",
            code="httpcore_missing",
            hint="pip install 'hyperpod-jlab[kubernetes]'",
        ) from None
    return process_of(handler).ports


@contextlib.contextmanager
def _translated_errors(port: int) -> Iterator[None]:
    """Converts errors of the HTTP library to ours."""
    import httpcore

    try:
        yield
    except httpcore.LocalProtocolError as error:
        raise InvalidInputError("this request cannot be forwarded") from error
    except (httpcore.ProtocolError, httpcore.NetworkError) as error:
        raise UnreachableError(
            f"port {port} closed the connection without an HTTP answer",
            code="port_closed",
            hint="the program may have ended or use another protocol; try: hpj forward",
            detail={"port": port},
        ) from error
    except httpcore.TimeoutException as error:
        raise UnreachableError(
            f"port {port} has no connection to spare", detail={"port": port}
        ) from error


# --------------------------------------------------------------------------------------------------
# The first request for a port of a run: redeems the ticket from a click in JupyterLab and redirects
# to the URL with the key.

ENTRANCE_PATTERN: Final = rf"{PORT_PATTERN}(?:/.*)?"


class PortEntrance(SandboxedHandler):
    """Admits requests with a ticket. Rejects all other requests without a key: links from other sites, bookmarks, other methods."""

    _ticket = ""

    async def prepare(self) -> None:  # type: ignore[override]  # as Jupyter's own APIHandler
        """As in Jupyter's handlers, except that a check of the site replaces the XSRF cookie."""
        self._ticket = self.get_query_argument("ticket", "")
        self.hide_path(self.request.path)
        await super().prepare()

    def check_xsrf_cookie(self) -> None:
        """Not needed: only GET does anything."""

    @guarded("execute")
    async def get(self, run_id: str, port: str) -> None:
        """Redeem a ticket."""
        address = parse_address(run_id, port)
        if self.request.method != "GET" or not self._ticket:
            raise denied_error()
        self._check_site()
        assert self.current_user is not None
        keys = process_of(self).port_keys
        key = keys.redeem(self._ticket, self.current_user, address)
        self.set_header("Cache-Control", "no-store")
        start = self.request.path.rstrip("/")
        self.redirect(f"{start}/{KEY_MARK}{key}/", status=HTTPStatus.SEE_OTHER)

    post = put = patch = delete = head = options = get

    def _check_site(self) -> None:
        """Only JupyterLab's own page or direct navigation may use a ticket. Browsers omit Sec-Fetch-Site on plain HTTP: then the Referer decides."""
        site = self.request.headers.get("Sec-Fetch-Site")
        is_same_site = self.check_referer() if site is None else site in {"same-origin", "none"}
        if not is_same_site or not self.check_origin():
            raise HTTPError(403, reason="Other sites cannot open a port of a run")
