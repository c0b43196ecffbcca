"""What a port of a running run's node answers, such as TensorBoard, in a tab of the browser: HTTP and WebSocket, handed on as they are.

Only nodes of the named run are reached, with this server's own rights on the cluster. A page of the program has this server's origin, as with
jupyter-server-proxy: it can do what its user can. It is the user's own run; who does not trust it takes ``hpj forward``, which has an origin of its own.
A sandboxed origin instead would keep such pages from asking for their own data, since the browser sends them no cookies.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from hyperpod_jlab.model.errors import InvalidInputError, UnreachableError, UnsupportedError
from hyperpod_jlab.server.base import API_PREFIX, AUTH_RESOURCE, ErrorShape, guarded, process_of
from hyperpod_jlab.server.port_headers import from_program, to_program

if TYPE_CHECKING:
    import httpcore
    from tornado.iostream import IOStream

PORT_PATTERN: Final = rf"{API_PREFIX}/runs/(?P<run_id>[^/]+)/ports/(?P<port>[^/]+)(?P<path>/.*)?"

_PLACE = re.compile(r"(?:([0-9]{1,5}):)?([0-9]{1,5})")
_CHUNK = 65_536
_WAIT = {"connect": 30.0, "pool": 30.0}


class PortProxy(ExtensionHandlerMixin, ErrorShape, JupyterHandler):
    """Hands requests on to a port of a run's node."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False  # pages ask again and again by themselves
    _work: asyncio.Task[None] | None = None
    _gone = False

    @guarded("execute")
    async def get(self, run_id: str, port: str, path: str | None) -> None:
        """Hand a request on."""
        self._check_site()
        if not path:  # relative addresses on the page need the slash
            rest = f"?{self.request.query}" if self.request.query else ""
            self.redirect(f"{self.request.path}/{rest}")
            return
        found = _PLACE.fullmatch(port)
        if found is None:
            raise InvalidInputError(
                f"'{port[:40]}' is no port; it is a number, or a node's rank and a number as 1:6006",
                detail={"field": "port"},
            )
        work = self._hand_on(run_id, int(found[1] or 0), int(found[2]))
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._gone:
                raise

    post = put = patch = delete = head = options = get

    def check_xsrf_cookie(self) -> None:
        """The program's own pages know no token of Jupyter's. That a request comes from this very origin is asked instead, once the user is known."""

    def compute_etag(self) -> str | None:
        """None: what the program says is handed on."""
        return None

    def on_connection_close(self) -> None:
        """Nobody waits for the answer any more."""
        super().on_connection_close()
        self._gone = True
        if self._work is not None:
            self._work.cancel()

    def _check_site(self) -> None:
        """Other sites may lead a user here, but not use a run's port in their name."""
        headers = self.request.headers
        foreign = headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}
        opens = self.request.method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"
        if not self.check_origin() or (foreign and not opens):
            raise HTTPError(403, reason="Requests of other sites are not handed on")

    async def _hand_on(self, run_id: str, node: int, port: int) -> None:
        process = process_of(self)
        process.attend()
        hyperpod = await process.hyperpod()
        pool = (await _ports(self)).get(hyperpod, run_id, node, port)
        await process.ports.trim()
        upgrades = self.request.headers.get("Upgrade", "").lower() == "websocket"
        headers = list(to_program(self.request.headers.get_all(), port, self._prefix()))
        if upgrades:
            headers += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
        with _in_our_words(port):
            answering = pool.stream(
                self.request.method or "GET",
                self._url(port),
                headers=headers,
                content=self.request.body or None,
                extensions={"timeout": _WAIT},
            )
            async with answering as answer:
                if answer.status == 101 and upgrades:
                    await self._tunnel(answer, port)
                else:
                    await self._pass_back(answer, port)

    async def _pass_back(self, answer: httpcore.Response, port: int) -> None:
        """Send the program's answer as it comes."""
        reason = answer.extensions.get("reason_phrase", b"").decode("latin-1")
        self.set_status(answer.status, reason or None)
        self.clear_header("Content-Type")
        self.clear_header("Server")
        given = [(name.lower(), name, value) for name, value in self._back(answer, port)]
        for lower, name, value in given:
            # Who may frame the page, Jupyter says as well.
            (self.add_header if lower in {"set-cookie", _POLICY} else self._join)(name, value)
        try:
            async for chunk in answer.aiter_stream():
                self.write(chunk)
                await self.flush()
            await self.finish()
        except StreamClosedError:  # nobody takes it any more
            return
        except Exception:  # raised again, unless the answer has begun
            if self._headers_written:  # too late to say so: the browser sees that it was cut
                self.log.warning("what port %s of a run answered was cut", port)
                stream = self.detach()
                stream.close()
                return
            raise

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
        return list(from_program(answer.headers, port, self._prefix()))

    def _prefix(self) -> str:
        """The path of the port, with a slash at its end."""
        before, mark, after = self.request.path.partition(f"{API_PREFIX}/runs/")
        return f"{before}{mark}{'/'.join(after.split('/')[:3])}/"

    def _url(self, port: int) -> httpcore.URL:
        import httpcore

        rest = self.request.path[len(self._prefix()) :]
        token = self.identity_provider.token
        query = [
            word
            for word in self.request.query.split("&")
            if word and not (token and word == f"token={token}")
        ]
        target = f"/{rest}" + (f"?{'&'.join(query)}" if query else "")
        return httpcore.URL(
            scheme=b"http", host=b"localhost", port=port, target=target.encode("latin-1", "replace")
        )


_POLICY = "content-security-policy"


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
