"""The meeting's connections: lines of JSON over TCP between node 0 and the others.

Whoever connects has to prove, and node 0 proves to it, that it has the run's key (HMAC over the other's challenge), before a word counts; until then a
connection has `HELLO_SECONDS` and a few kilobytes. A message only ever says how things stand; nothing in one is executed or names a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import Any, Dict, List, Mapping, NamedTuple

HEARTBEAT_S = 3.0
"""Seconds between two messages, whatever happens."""
SILENCE_TIMEOUT_S = 15.0
"""Seconds of silence after which a connection counts as cut: power failures say nothing."""
HELLO_TIMEOUT_S = 10.0


class PeerInfo(NamedTuple):
    """Who a pod is."""

    run_id: str
    nodes: int
    node_rank: int
    name: str
    instance: str
    born: float


class ConnectionBroken(Exception):  # noqa: N818 - it happens every day
    """A connection is of no use any more."""


def compute_proof(key: bytes, role: str, challenge: str, text: str) -> str:
    """What only somebody with the key can answer to a challenge, bound to the text that comes with it."""
    import hashlib
    import hmac

    message = ("%s\n%s\n%s" % (role, challenge, text)).encode("utf-8")
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def is_proof(received: object, expected: str) -> bool:
    """Whether an answer is right; it takes equally long if not."""
    import hmac

    return isinstance(received, str) and hmac.compare_digest(received.encode(), expected.encode())


class Connection:
    """One connection: JSON objects, a line each. It never blocks."""

    MAX_UNPROVEN_LINE = 4096
    MAX_LINE = 65536

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.challenge = os.urandom(16).hex()
        self.opened_at = self.heard_at = time.monotonic()
        self.beaten = float("-inf")
        self.proven = False
        self._incoming = b""
        self._outgoing = b""
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, document: Mapping[str, Any]) -> None:
        """Say something.

        Raises:
            Broken: Nobody reads it.
        """
        self._outgoing += json.dumps(document).encode("utf-8") + b"\n"
        if len(self._outgoing) > self.MAX_LINE * 4:
            raise ConnectionBroken("it does not accept data")
        self.flush()

    def flush(self) -> None:
        """Write what the system takes."""
        while self._outgoing:
            try:
                sent = self.sock.send(self._outgoing)
            except BlockingIOError:
                return
            except OSError as error:
                raise ConnectionBroken(error.strerror or str(error)) from None
            self._outgoing = self._outgoing[sent:]

    @property
    def has_outgoing(self) -> bool:
        """Whether the system has not taken all yet."""
        return bool(self._outgoing)

    def receive(self) -> List[Dict[str, Any]]:
        """What has come; empty when it is no whole line yet.

        Raises:
            Broken: The connection has ended, or what comes is no message.
        """
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return []
        except OSError as error:
            raise ConnectionBroken(error.strerror or str(error)) from None
        if not data:
            raise ConnectionBroken("it was closed")
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        max_line = self.MAX_LINE if self.proven else self.MAX_UNPROVEN_LINE
        if max(map(len, [self._incoming, *lines])) > max_line:
            raise ConnectionBroken("a line is too long")
        messages = []
        for line in lines:
            try:
                message = json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError):
                raise ConnectionBroken("it sent an invalid message") from None
            if not isinstance(message, dict):
                raise ConnectionBroken("it sent an invalid message")
            messages.append(message)
        self.heard_at = time.monotonic()
        return messages

    def check(self, now: float) -> None:
        """See that it is not silent for too long.

        Raises:
            Broken: It is.
        """
        if now - self.heard_at > SILENCE_TIMEOUT_S:
            raise ConnectionBroken("no data for %d s" % SILENCE_TIMEOUT_S)
        if not self.proven and now - self.opened_at > HELLO_TIMEOUT_S:
            raise ConnectionBroken("it did not identify itself")

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self.sock.close()
