"""A proxy on loopback in front of a real API server, which makes faults.

    with FaultyProxy(kubernetes_cluster.kubeconfig) as proxy:              # a thread of its own; any number at once
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))           # the same user, by way of the proxy
        fault = proxy.add(refuse(429, retry_after=1), verb="POST", path="/pytorchjobs", times=2)
        ...
        assert fault.hits == 2
        proxy.remove(fault)                                               # or proxy.clear()
        proxy.requests                                                    # Seen(verb, path, query, at, status) of all requests so far

A fault holds for requests whose verb is `verb` and whose path with query contains `path` (a regular expression), the first `times` of them after `skip` others. The faults:

    refuse(status, message=..., reason=..., retry_after=...)   the API server's Status object, not forwarded
    page(status, text)                                         a proxy's HTML, not forwarded
    delay(seconds)                                             forwarded later
    lose_answer()                                              forwarded; when the answer has come, the connection is closed instead of giving it
    drop()                                                     the connection is closed, not forwarded
    hang()                                                     not forwarded, no answer, until the other side gives up or the proxy ends
    cut(after=3.0)                                             forwarded; the connection is cut (without a clean end) so many seconds after its begin
    cut_bytes(n)                                               forwarded; cut after n bytes of the answer
    end(after=3.0)                                             forwarded; a clean end so many seconds after its begin, in the middle of whatever comes
    replace(body, status=200)                                  not forwarded: this body (bytes or JSON) is the answer
    append(text)                                               forwarded; this text stands in the answer before its clean end
    expire()                                                   a watch: HTTP 200 with an ERROR event of code 410, then the end

    proxy.cut_all()          cuts all connections now
    proxy.every(3.0)         from now on every connection is cut when it is 3 s old; proxy.every(None): no longer
    proxy.down() / up()      the API server is gone: nothing listens at its address / it is back
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
import tempfile
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.kubernetes.proxy_exchange import HOP_BY_HOP, CutError, Exchange, Seen, read_head
from tests.kubernetes.proxy_faults import (
    Pipe,
    append,
    cut,
    cut_bytes,
    delay,
    drop,
    end,
    expire,
    hang,
    lose_answer,
    page,
    refuse,
    replace,
)

__all__ = [
    "Fault",
    "FaultyProxy",
    "Pipe",
    "Seen",
    "append",
    "cut",
    "cut_bytes",
    "delay",
    "drop",
    "end",
    "expire",
    "hang",
    "lose_answer",
    "page",
    "refuse",
    "replace",
]


@dataclass
class Fault:
    """What is done to some requests."""

    pipe: Pipe
    verb: str | None
    path: str
    times: int | None
    skip: int
    hits: int = 0
    """How many requests it has met."""

    def meets(self, seen: Seen, target: str) -> bool:
        """Whether it holds for a request, which is counted then."""
        if self.verb not in {None, seen.verb} or not re.search(self.path, target):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.hits += 1
        return True


class FaultyProxy:
    """The proxy; see the module's own words."""

    def __init__(self, kubeconfig: Path) -> None:
        self.requests: list[Seen] = []
        self._faults: list[Fault] = []
        self._every: float | None = None
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._folder = tempfile.TemporaryDirectory(prefix="hpj-proxy-")
        self._config = yaml.safe_load(kubeconfig.read_text())
        self._target, self._tls = _way(self._config)
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        """Names the proxy instead of the API server, over plain HTTP; tokens and the rest as in the given one."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._on_loop(self._listen())
        for one in self._config["clusters"]:
            one["cluster"] = {"server": self.address}
        for one in self._config["users"]:
            # Over plain HTTP there are no client certificates: the proxy itself shows them.
            for name in ("client-certificate-data", "client-key-data", "client-certificate"):
                one["user"].pop(name, None)
            one["user"].pop("client-key", None)
        self.kubeconfig.write_text(yaml.safe_dump(self._config))
        return self

    def __exit__(self, *exc: object) -> None:
        self._on_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self._folder.cleanup()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    def add(
        self, fault: Pipe, *, verb: str | None = None, path: str = "", times: int | None = None, skip: int = 0
    ) -> Fault:
        """Make a fault. Of several that meet a request, the one that was added first."""
        made = Fault(fault, verb, path, times, skip)
        self._faults.append(made)
        return made

    def remove(self, fault: Fault) -> None:
        """Make it no longer."""
        self._faults = [one for one in self._faults if one is not fault]

    def clear(self) -> None:
        """No faults any more, but for `every` and `down`."""
        self._faults = []

    def cut_all(self) -> None:
        """Cut all connections."""
        self._on_loop(self._cut_all())

    def every(self, seconds: float | None) -> None:
        """Cut each connection when it is so old; also the ones that there are."""
        self._every = seconds

    def down(self) -> None:
        """Nothing listens any more, and all connections are cut."""
        self._on_loop(self._close())
        self.cut_all()

    def up(self) -> None:
        """It is back, at the same address."""
        self._on_loop(self._listen())

    async def upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the API server."""
        host, port = self._target
        return await asyncio.open_connection(host, port, ssl=self._tls, limit=1 << 20)

    # ------------------------------------------------------------------------------ in its thread

    def _on_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=1000, limit=1 << 20)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _stop(self) -> None:
        await self._close()
        tasks = list(self._tasks)
        await self._cut_all()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _cut_all(self) -> None:
        for writer in self._tasks.values():
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = writer
        watcher = asyncio.create_task(self._age(writer))
        try:
            await self._exchange(reader, writer)
        except (CutError, OSError, asyncio.IncompleteReadError, ValueError, IndexError):
            writer.transport.abort()
        finally:
            watcher.cancel()
            self._tasks.pop(task, None)
            writer.close()

    async def _age(self, writer: asyncio.StreamWriter) -> None:
        """Cuts a connection that has become too old."""
        begin = time.monotonic()
        while not writer.is_closing():
            if self._every is not None and time.monotonic() - begin >= self._every:
                writer.transport.abort()
                return
            await asyncio.sleep(0.02)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, headers = await read_head(reader)
        verb, target, _ = line.split(" ", 2)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        seen = Seen(verb, parts.path, query, time.monotonic())
        self.requests.append(seen)
        if "upgrade" in headers:  # a port-forward: bytes both ways
            await self._tunnel(line, headers, body, reader, writer)
            return
        sent = [f"{name}: {value}" for name, value in headers.items() if name not in HOP_BY_HOP]
        sent += [f"Host: {self._target[0]}", "Connection: close"]
        if body or verb in {"POST", "PUT", "PATCH"}:
            sent.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([line, *sent, "", ""]).encode("latin-1")
        exchange = Exchange(self.upstream, seen, head, body, writer)
        decoded = unquote(target)
        fault = next((one for one in self._faults if one.meets(seen, decoded)), None)
        gone = asyncio.create_task(reader.read(1))  # the client has had enough
        work = asyncio.ensure_future(fault.pipe(exchange) if fault else exchange.forward())
        try:
            await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise CutError
            await work
        finally:
            gone.cancel()
            work.cancel()
            for opened in exchange.opened:
                opened.close()

    async def _tunnel(
        self,
        line: str,
        headers: dict[str, str],
        body: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        there, to_there = await self.upstream()
        lines = [line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        to_there.write("\r\n".join(lines).encode("latin-1") + body)
        ways = [_pump(reader, to_there), _pump(there, writer)]
        tasks = [asyncio.ensure_future(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        to_there.close()


def _way(config: dict[str, Any]) -> tuple[tuple[str, int], ssl.SSLContext | None]:
    """Host and port of the current context's API server, and how to speak TLS with it, as its user."""
    context = next(one["context"] for one in config["contexts"] if one["name"] == config["current-context"])
    cluster = next(one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"])
    user = next(one["user"] for one in config["users"] if one["name"] == context["user"])
    parts = urlsplit(cluster["server"])
    target = (str(parts.hostname), parts.port or 443)
    if parts.scheme != "https":
        return target, None
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile() as file:
            for name in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[name]))
            file.flush()
            made.load_cert_chain(file.name)
    elif "client-certificate" in user:
        made.load_cert_chain(user["client-certificate"], user["client-key"])
    return target, made


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
