"""A Jupyter server of a user's, with our extension, asked over HTTP."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from tests.security.people import LIMIT, Person

_TOKEN = "of-a-test"
_START = 60.0


class Server:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, verb: str, path: str, body: Any = None, *, limit: float = 3 * LIMIT) -> tuple[int, Any]:
        """The status and the JSON of an answer; status 0 when none came in time."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=limit)
        try:
            data = None if body is None else json.dumps(body)
            headers = {"Authorization": f"token {_TOKEN}", "Content-Type": "application/json"}
            connection.request(verb, f"/hyperpod/api/v1/{path}", data, headers)
            response = connection.getresponse()
            said = response.read().decode(errors="replace")
        except OSError:  # a timeout too
            return 0, None
        finally:
            connection.close()
        try:
            return response.status, json.loads(said)
        except ValueError:
            return response.status, said


@contextmanager
def serving(person: Person) -> Iterator[Server]:
    """Start a server as this user; it ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.root_dir": person.project,
        "ServerApp.jpserver_extensions": {"hyperpod_jlab": True, "jupyter_server_terminals": False},
        "IdentityProvider.token": _TOKEN,
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    # What Jupyter's other parts leave in a home is none of ours.
    environment = {"HOME": str(person.state), "KUBECONFIG": str(person.home / ".kube" / "config")}
    going = person.program("python", "-m", "jupyter_server", *words, environment=environment)
    server = Server(port)
    try:
        end = time.monotonic() + _START
        while server.ask("GET", "version", limit=5)[0] != 200:
            assert time.monotonic() < end, "no server"
            assert not going.over, going.answer().text
            time.sleep(0.1)
        yield server
    finally:
        going.end()
