"""What a port of a running run's node answers, such as TensorBoard, in a tab of the browser: HTTP and WebSocket, handed on as they are.

Only nodes of the named run are reached, with this server's own rights on the cluster. Who asks is known by the key in the address (see
`port_keys`): pages of the program are sandboxed, so the browser sends no cookies for them, and nothing here reads any.
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
# Headers on their way to a program in a run and back: Jupyter's own secrets stay here, and what the program says reaches its own page alone.

SANDBOX: Final = "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads"
"""The Content-Security-Policy of every answer.

Without ``allow-same-origin`` a page has an origin that equals no other: no cookies, no storage, no reading of Jupyter's pages or API. It holds for
frames and pop-ups that the page opens, too. No ``frame-ancestors`` stands beside it: such an origin never matches one, so a program could not show
frames of its own, and who does not know the key has nothing to frame.
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
    # To the program its own page is no stranger; that it is sandboxed is ours to know.
    | {"sec-fetch-site"}
)
_DROPPED_RESPONSE_HEADERS = frozenset(
    {
        # What would hold for all of Jupyter's address, or outlive the run:
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
        # What says who may read, frame or open the page, which is ours to say, and wrong for a sandboxed one:
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
    """A request's headers as the program gets them: as if it had been asked on its own machine.

    Args:
        headers: As the browser sent them. Its cookies are Jupyter's, and stay here with its token and its addresses.
        port: The program's.
        prefix: The path under which the browser sees the program.
        cookies: The program's own, ``""`` for none.
        plain: Ask for the body without a compression.
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
    """A response's headers as the browser gets them: what concerns the program's page alone."""
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
    """The values of a response's ``Set-Cookie``."""
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"set-cookie"]


def cors_headers(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What lets a sandboxed page read an answer of its own program: its origin is called ``null``."""
    yield "Access-Control-Allow-Origin", "null"
    yield "Access-Control-Allow-Credentials", "true"
    if header_names := ", ".join(sorted(set(names))):
        yield "Access-Control-Expose-Headers", header_names


def _program_policy(value: str) -> Iterator[str]:
    """A program's policies without who may frame it (see `SANDBOX`), and with the workers that its page's first script makes (see `port_page`)."""
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
    """A redirect to the program itself leads back through here; others are its own business."""
    parts = urlsplit(value)
    local_hosts = {f"localhost:{port}", f"127.0.0.1:{port}", ""}
    if parts.netloc not in local_hosts or not parts.path.startswith("/"):
        return value
    rest = parts._replace(scheme="", netloc="", path=prefix + parts.path[1:])
    return rest.geturl()


# --------------------------------------------------------------------------------------------------
# What both handlers of ports share: every answer, errors too, makes a sandboxed page, and no secret of an address gets into a log.

PORT_PATTERN: Final = rf"{API_PREFIX}/runs/(?P<run_id>[^/]+)/ports/(?P<port>[^/]+)"
"""The path of a port."""
KEY_MARK: Final = "~"
"""Stands before the key in an address."""

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
    """Answers under the address of a port."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False  # pages ask again and again by themselves

    @property
    def content_security_policy(self) -> str:
        """No page under such an address has Jupyter's origin, whatever is configured for others."""
        return SANDBOX

    def set_default_headers(self) -> None:
        """What every answer has, in place of what Jupyter adds to its own pages."""
        self.set_header("Content-Security-Policy", self.content_security_policy)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """A short page for a person, the one shape of errors for programs."""
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
        """Whether the browser asks for what it will show, in a tab or a frame."""
        headers = self.request.headers
        destination = headers.get("Sec-Fetch-Dest")
        if destination is not None:
            return destination in {"document", "iframe", "frame"}
        return self.request.method == "GET" and "text/html" in headers.get("Accept", "")

    def hide_path(self, path: str) -> None:
        """Go on as if this had been the request's address: the server's log, also that of faults, has what stands there."""
        self.request.path = self.request.uri = path


KEY_PATTERN: Final = rf"{PORT_PATTERN}/{KEY_MARK}(?P<key>[^/]*)(?P<path>/.*)?"

_CHUNK = 65_536
_TIMEOUTS_S = {"connect": 30.0, "pool": 30.0}


class PortProxy(SandboxedHandler):
    """Hands requests on to a port of a run's node, for who has its key."""

    _work: asyncio.Task[None] | None = None
    _gone = False

    async def prepare(self) -> None:  # type: ignore[override]  # as Jupyter's own APIHandler
        """Nobody is logged in here: neither Jupyter's cookies nor its token are looked at."""
        prefix, separator, suffix = self.request.path.partition(f"{API_PREFIX}/runs/")
        run_id, ports, port, key, *rest = suffix.split("/", 4)
        self._prefix = f"{prefix}{separator}{run_id}/{ports}/{port}/{key}/"
        self._rest = rest[0] if rest else None
        self.hide_path(f"{prefix}{separator}{run_id}/{ports}/{port}/{KEY_MARK}/{self._rest or ''}")
        self.current_user = None
        if not self.check_host():
            raise HTTPError(403)

    def set_default_headers(self) -> None:
        """Beside what all answers have: the program's own page may read them."""
        super().set_default_headers()
        self.set_header("Vary", "Origin")
        if self.request.headers.get("Origin") == "null":
            for name, value in cors_headers(()):
                self.set_header(name, value)

    @allow_unauthenticated
    async def get(self, run_id: str, port: str, key: str, path: str | None) -> None:
        """Hand a request on."""
        del path
        session = process_of(self).port_keys.find(key, parse_address(run_id, port))
        await self._check(session)
        if self._rest is None:  # relative addresses on the page need the slash
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
        """The key is what other sites do not know."""

    def compute_etag(self) -> str | None:
        """None: what the program says is handed on."""
        return None

    def on_connection_close(self) -> None:
        """Nobody waits for the answer any more."""
        super().on_connection_close()
        self._gone = True
        if self._work is not None:
            self._work.cancel()

    async def _check(self, session: PortSession) -> None:
        """Whether the user who opened the port still may, and no page but the program's own asks."""
        self.current_user = session.user
        allowed = self.authorizer.is_authorized(self, session.user, "execute", AUTH_RESOURCE)
        if not await ensure_async(allowed):
            raise HTTPError(403)
        # Its pages are called "null". That of Jupyter's own has no business here, nor has another site's that was told the key.
        if (self.get_origin() or "null").lower() != "null":
            raise HTTPError(403, reason="Requests from other sites are not forwarded")
        if self.request.headers.get("Service-Worker"):
            raise HTTPError(403, reason="Service workers are not supported on pages of a run")

    def _is_preflight(self) -> bool:
        has_request_method = "Access-Control-Request-Method" in self.request.headers
        return self.request.method == "OPTIONS" and has_request_method

    def _answer_preflight(self) -> None:
        """The program is not asked: for it, its page is on its own machine."""
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
        """Send the program's answer as it comes."""
        reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
        self.set_status(response.status, reason or None)
        self.clear_header("Content-Type")
        self.clear_header("Server")
        response_headers = [
            (name.lower(), name, value) for name, value in self._response_headers(response, port)
        ]
        for lower_name, name, value in response_headers:
            # The sandbox stays beside what the program itself forbids its page.
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
        except StreamClosedError:  # nobody takes it any more
            return
        except Exception:  # raised again, unless the answer has begun
            if self._headers_written:  # too late to say so: the browser sees that it was cut
                self.log.warning("the answer of port %s of a run was cut", port)
                stream = self.detach()
                stream.close()
                return
            raise

    def _page_start(self) -> PageStart | None:
        """What adds to the answer, if it is a page; its length is as it will be then."""
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
        """Join the two connections; frames are not looked at."""
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

        # Who pastes an address with Jupyter's token does not mean the program.
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
    """A joined connection, for when the server stops."""

    def __init__(self, stream: IOStream) -> None:
        self._stream = stream

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End it."""
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
    """The connections; what they need is imported when first asked for."""
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
    """Turns complaints of the HTTP library into errors of ours."""
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
# The first request for a port of a run: with a ticket from a click in JupyterLab it leads to the address that has the key.

ENTRANCE_PATTERN: Final = rf"{PORT_PATTERN}(?:/.*)?"


class PortEntrance(SandboxedHandler):
    """Lets in who has a ticket. All else without a key ends here: links of other sites, bookmarks, other methods."""

    _ticket = ""

    async def prepare(self) -> None:  # type: ignore[override]  # as Jupyter's own APIHandler
        """As all of Jupyter's handlers; a check of the site takes the place of the XSRF cookie."""
        self._ticket = self.get_query_argument("ticket", "")
        self.hide_path(self.request.path)
        await super().prepare()

    def check_xsrf_cookie(self) -> None:
        """Nothing is done for a request other than GET."""

    @guarded("execute")
    async def get(self, run_id: str, port: str) -> None:
        """Turn a ticket into a key."""
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
        """A ticket is used by JupyterLab's own page, or by the user's own hand. Browsers say nothing of sites on plain HTTP: then the Referer has to."""
        site = self.request.headers.get("Sec-Fetch-Site")
        is_same_site = self.check_referer() if site is None else site in {"same-origin", "none"}
        if not is_same_site or not self.check_origin():
            raise HTTPError(403, reason="Other sites cannot open a port of a run")
