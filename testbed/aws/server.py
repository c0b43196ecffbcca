"""The endpoint on a port of loopback."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from testbed.aws.endpoint import Endpoint
from testbed.aws.faults import ConnectionCutError


class AwsServer:
    """Serves an endpoint while it is entered; ``AWS_ENDPOINT_URL`` is its `url`.

    Args:
        endpoint: What answers.
        port: The port; 0 takes a free one.
    """

    def __init__(self, endpoint: Endpoint | None = None, port: int = 0) -> None:
        self.endpoint = endpoint or Endpoint()
        self._server = _Server(("127.0.0.1", port), _handler(self.endpoint))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A connection that a client keeps open would be waited for.
    block_on_close = False
    request_queue_size = 128


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body in one packet

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                reply = endpoint.answer(self.headers, body, self.path, self.command)
            except ConnectionCutError:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            now = time.time() if timestamp is None else timestamp
            return super().date_time_string(int(now + endpoint.faults.clock.total_seconds()))

        def log_message(self, *words: Any) -> None:
            del words

    return Handler
