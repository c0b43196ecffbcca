"""What a port of a running run's node answers, such as TensorBoard, in a tab of the browser: HTTP and WebSocket, handed on as they are.

Only nodes of the named run are reached, with this server's own rights on the cluster. Who asks is known by the key in the address (see
`port_keys`): pages of the program are sandboxed, so the browser sends no cookies for them, and nothing here reads any.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import allow_unauthenticated
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from hyperpod_jlab.model.errors import InvalidInputError, UnreachableError, UnsupportedError
from hyperpod_jlab.server.base import API_PREFIX, AUTH_RESOURCE, process_of
from hyperpod_jlab.server.port_headers import cookies_of, from_program, readable, to_program
from hyperpod_jlab.server.port_keys import Place, PortSession, place_of
from hyperpod_jlab.server.port_page import SCRIPT_PATH, PageStart, is_html, page_script
from hyperpod_jlab.server.port_sandbox import KEY_MARK, PORT_PATTERN, SandboxedHandler

if TYPE_CHECKING:
    import httpcore
    from tornado.iostream import IOStream

KEY_PATTERN: Final = rf"{PORT_PATTERN}/{KEY_MARK}(?P<key>[^/]*)(?P<path>/.*)?"

_CHUNK = 65_536
_WAIT = {"connect": 30.0, "pool": 30.0}


class PortProxy(SandboxedHandler):
    """Hands requests on to a port of a run's node, for who has its key."""

    _work: asyncio.Task[None] | None = None
    _gone = False

    async def prepare(self) -> None:  # type: ignore[override]  # as Jupyter's own APIHandler
        """Nobody is logged in here: neither Jupyter's cookies nor its token are looked at."""
        before, mark, after = self.request.path.partition(f"{API_PREFIX}/runs/")
        run_id, ports, port, key, *rest = after.split("/", 4)
        self._prefix = f"{before}{mark}{run_id}/{ports}/{port}/{key}/"
        self._rest = rest[0] if rest else None
        self.hide(f"{before}{mark}{run_id}/{ports}/{port}/{KEY_MARK}/{self._rest or ''}")
        self.current_user = None
        if not self.check_host():
            raise HTTPError(403)

    def set_default_headers(self) -> None:
        """Beside what all answers have: the program's own page may read them."""
        super().set_default_headers()
        self.set_header("Vary", "Origin")
        if self.request.headers.get("Origin") == "null":
            for name, value in readable(()):
                self.set_header(name, value)

    @allow_unauthenticated
    async def get(self, run_id: str, port: str, key: str, path: str | None) -> None:
        """Hand a request on."""
        del path
        session = process_of(self).port_keys.find(key, place_of(run_id, port))
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
        self._work = asyncio.ensure_future(self._hand_on(session))
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
            raise HTTPError(403, reason="Requests of other sites are not handed on")
        if self.request.headers.get("Service-Worker"):
            raise HTTPError(403, reason="A page of a run has no service worker")

    def _is_preflight(self) -> bool:
        asked = "Access-Control-Request-Method" in self.request.headers
        return self.request.method == "OPTIONS" and asked

    def _answer_preflight(self) -> None:
        """The program is not asked: for it, its page is on its own machine."""
        headers = self.request.headers
        self.set_header("Access-Control-Allow-Methods", headers["Access-Control-Request-Method"])
        if wanted := headers.get("Access-Control-Request-Headers"):
            self.set_header("Access-Control-Allow-Headers", wanted)
        self.set_header("Access-Control-Max-Age", "600")
        self.set_status(204)
        self.finish()

    async def _hand_on(self, session: PortSession) -> None:
        place = session.place
        process = process_of(self)
        process.attend()
        hyperpod = await process.hyperpod()
        pool = (await _ports(self)).get(hyperpod, place.run_id, place.node, place.port)
        await process.ports.trim()
        upgrades = self.request.headers.get("Upgrade", "").lower() == "websocket"
        cookies = session.cookies.line(f"/{self._rest}")
        sent = self.request.headers.get_all()
        headers = list(to_program(sent, place.port, self._prefix, cookies, plain=self.is_page))
        if upgrades:
            headers += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
        with _in_our_words(place.port):
            answering = pool.stream(
                self.request.method or "GET",
                self._url(place),
                headers=headers,
                content=self.request.body or None,
                extensions={"timeout": _WAIT},
            )
            async with answering as answer:
                for line in cookies_of(answer.headers):
                    session.cookies.take(line)
                if answer.status == 101 and upgrades:
                    await self._tunnel(answer, place.port)
                else:
                    await self._pass_back(answer, place.port)

    async def _pass_back(self, answer: httpcore.Response, port: int) -> None:
        """Send the program's answer as it comes."""
        reason = answer.extensions.get("reason_phrase", b"").decode("latin-1")
        self.set_status(answer.status, reason or None)
        self.clear_header("Content-Type")
        self.clear_header("Server")
        given = [(name.lower(), name, value) for name, value in self._back(answer, port)]
        for lower, name, value in given:
            # The sandbox stays beside what the program itself forbids its page.
            (self.add_header if lower in _KEPT else self._join)(name, value)
        if self.request.headers.get("Origin") == "null":
            for name, value in readable(name for _, name, _ in given):
                self.set_header(name, value)
        start = self._page_start()
        try:
            async for chunk in answer.aiter_stream():
                self.write(start.feed(chunk) if start else chunk)
                await self.flush()
            await self.finish(start.end() if start else None)
        except StreamClosedError:  # nobody takes it any more
            return
        except Exception:  # raised again, unless the answer has begun
            if self._headers_written:  # too late to say so: the browser sees that it was cut
                self.log.warning("what port %s of a run answered was cut", port)
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
        wanted = self.is_page and self.request.method != "HEAD"
        if not wanted or not is_html(self.get_status(), kind, encoding):
            return None
        start = PageStart(self._prefix)
        if length.isdecimal():
            self.set_header("Content-Length", str(int(length) + len(start.tag)))
        return start

    def _join(self, name: str, value: str) -> None:
        self.set_header(name, value) if name not in self._headers else self.add_header(name, value)

    async def _tunnel(self, answer: httpcore.Response, port: int) -> None:
        """Join the two connections; frames are not looked at."""
        far = answer.extensions["network_stream"]
        lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"]
        lines += [f"{name}: {value}" for name, value in self._back(answer, port)]
        near = self.detach()
        closing = _Closing(near)
        sockets = process_of(self).sockets
        sockets.add(closing)
        with contextlib.suppress(StreamClosedError):
            try:
                await near.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
                await _join_streams(near, far)
            finally:
                sockets.discard(closing)
                near.close()

    def _back(self, answer: httpcore.Response, port: int) -> list[tuple[str, str]]:
        return list(from_program(answer.headers, port, self._prefix))

    def _url(self, place: Place) -> httpcore.URL:
        import httpcore

        # Who pastes an address with Jupyter's token does not mean the program.
        token = self.identity_provider.token
        words = self.request.query.split("&")
        kept = "&".join(word for word in words if not (token and word == f"token={token}"))
        query = f"?{kept}" if kept else ""
        return httpcore.URL(
            scheme=b"http",
            host=b"localhost",
            port=place.port,
            target=f"/{self._rest}{query}".encode("latin-1", "replace"),
        )


_KEPT = frozenset({"content-security-policy", "vary"})


class _Closing:
    """A joined connection, for when the server stops."""

    def __init__(self, stream: IOStream) -> None:
        self._stream = stream

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End it."""
        del code, reason
        self._stream.close()


async def _join_streams(near: IOStream, far: Any) -> None:
    async def up() -> None:
        while True:
            await far.write(await near.read_bytes(_CHUNK, partial=True))

    async def down() -> None:
        while data := await far.read(_CHUNK):
            await near.write(data)

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
            "reaching a port of a run needs a package that is not installed",
            code="httpcore_missing",
            hint="pip install 'hyperpod-jlab[kubernetes]'",
        ) from None
    return process_of(handler).ports


@contextlib.contextmanager
def _in_our_words(port: int) -> Iterator[None]:
    """Turns complaints of the HTTP library into errors of ours."""
    import httpcore

    try:
        yield
    except httpcore.LocalProtocolError as error:
        raise InvalidInputError("this request cannot be handed on") from error
    except (httpcore.ProtocolError, httpcore.NetworkError) as error:
        raise UnreachableError(
            f"port {port} closed the connection without an answer in HTTP",
            code="port_closed",
            hint="the program there may have ended, or speaks another protocol: hpj forward",
            detail={"port": port},
        ) from error
    except httpcore.TimeoutException as error:
        raise UnreachableError(
            f"port {port} has no connection to spare", detail={"port": port}
        ) from error
