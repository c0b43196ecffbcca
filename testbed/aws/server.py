"""The endpoint on a port of loopback."""

from __future__ import annotations

import time

from testbed.aws.endpoint import Endpoint
from testbed.aws.faults import ConnectionCutError
from testbed.loopback import Handler, Loopback


class AwsServer(Loopback):
    """Serves an endpoint while it is entered; ``AWS_ENDPOINT_URL`` is its `url`.

    Args:
        endpoint: What answers.
        port: The port; 0 takes a free one.
    """

    def __init__(self, endpoint: Endpoint | None = None, port: int = 0) -> None:
        self.endpoint = endpoint or Endpoint()
        super().__init__(_handler(self.endpoint), port)


def _handler(endpoint: Endpoint) -> type[Handler]:
    class ToEndpoint(Handler):
        protocol_version = "HTTP/1.1"

        def take(self) -> None:
            try:
                reply = endpoint.answer(self.headers, self.body(), self.path, self.command)
            except ConnectionCutError:
                self.close_connection = True
                return
            self.answer(reply.status, reply.body, reply.headers)

        def date_time_string(self, timestamp: float | None = None) -> str:
            now = time.time() if timestamp is None else timestamp
            return super().date_time_string(int(now + endpoint.faults.clock.total_seconds()))

    return ToEndpoint
