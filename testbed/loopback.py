"""HTTP servers on ports of loopback, each with a thread of its own, for as long as they are entered."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class Handler(BaseHTTPRequestHandler):
    """Reads whole requests, sends whole answers, and writes nothing on the terminal."""

    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet

    def take(self) -> None:
        """Answer a request, whatever its method is (`command`); who does not say how has nothing."""
        self.answer(404)

    def do_GET(self) -> None:
        """As the server calls it."""
        self.take()

    do_POST = do_PUT = do_GET  # noqa: N815

    def body(self) -> bytes:
        """What came with the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Say nothing."""
        del words


class Loopback:
    """A server.

    Args:
        handler: Makes what answers a connection.
        port: The port; 0 takes a free one.
        listening: A socket that listens already, in place of one for the port.
        tls: With it the server speaks TLS.
    """

    def __init__(
        self,
        handler: Callable[..., BaseHTTPRequestHandler],
        port: int = 0,
        *,
        listening: socket.socket | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._server = _Server(("127.0.0.1", port), handler, bind_and_activate=listening is None)
        if listening is not None:
            self._server.socket.close()
            self._server.socket = listening
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "http" if tls is None else "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A connection that a client keeps open would be waited for.
    block_on_close = False
    request_queue_size = 128
