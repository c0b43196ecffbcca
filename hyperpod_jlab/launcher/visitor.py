"""The other nodes' side of the meeting's connections."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .meeting import Coordinator
from .wire import HEARTBEAT_S, Connection, ConnectionBroken, PeerInfo, compute_proof, is_proof


class Dialer:
    """Looks the host's name up and connects, in a thread of its own: a name server may take its time."""

    EVERY = 1.0

    def __init__(self, address: str, port: int) -> None:
        self._address = address
        self._port = port
        self._pending_sockets: List[socket.socket] = []
        self._busy = False
        self._next = 0.0
        self.last_problem = "it was not tried yet"

    def pop_socket(self, now: float) -> Optional[socket.socket]:
        """A connection, once there is one; looks for one if need be."""
        if self._pending_sockets:
            return self._pending_sockets.pop()
        if not self._busy and now >= self._next:
            import threading

            self._busy, self._next = True, now + self.EVERY
            threading.Thread(target=self._connect, name="dialer", daemon=True).start()
        return None

    def _connect(self) -> None:
        try:
            self._pending_sockets.append(
                socket.create_connection((self._address, self._port), timeout=5.0)
            )
        except OSError as error:
            self.last_problem = str(error)
        finally:
            self._busy = False


class CoordinatorClient:
    """The side of every other node: its connection to node 0, made again as often as it is cut."""

    def __init__(self, card: PeerInfo, key: bytes, dialer: Dialer) -> None:
        self._card = card
        self._key = key
        self.dialer = dialer
        self._connection: Optional[Connection] = None
        self._directive: Dict[str, Any] = {"do": "wait"}
        self.away_since: Optional[float] = time.monotonic()
        """Since when node 0 was not heard of; None while it is connected."""
        self.last_problem: Optional[str] = None
        self._last_state: Optional[Mapping[str, Any]] = None

    @property
    def sockets(self) -> Tuple[List[socket.socket], List[socket.socket]]:
        """What to wait for: to be read, to be written."""
        if self._connection is None:
            return [], []
        sock = self._connection.sock
        return [sock], [sock] if self._connection.has_outgoing else []

    def directive(self, now: float) -> Dict[str, Any]:
        """What is to be done, as node 0 said last; without it nothing goes on for long."""
        if self.away_since is not None and now - self.away_since > Coordinator.RETURN_S:
            return {"do": "wait"}
        return self._directive

    def poll(self, now: float) -> None:
        """Connect, and take in what is said."""
        try:
            if self._connection is None:
                sock = self.dialer.pop_socket(now)
                if sock is None:
                    return
                self._connection = Connection(sock)
            self._connection.flush()
            for message in self._connection.receive():
                self._handle(self._connection, message)
            self._connection.check(now)
        except ConnectionBroken as error:
            self._disconnect(str(error), now)

    def send_state(self, state: Mapping[str, Any], now: float) -> None:
        """Say how things stand here, when it has changed or for a sign of life."""
        connection = self._connection
        if connection is None or not connection.proven:
            return
        if state == self._last_state and now - connection.beaten < HEARTBEAT_S:
            return
        try:
            connection.beaten, self._last_state = now, dict(state)
            connection.send({"state": state})
        except ConnectionBroken as error:
            self._disconnect(str(error), now)

    def close(self) -> None:
        """Tell node 0 that this node will not come back, and end it."""
        connection = self._connection
        if connection is None:
            return
        if connection.proven:
            with contextlib.suppress(ConnectionBroken):
                connection.send({"bye": True})
        connection.close()

    def _disconnect(self, reason: str, now: float) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._last_state = None
        self.last_problem = reason
        if self.away_since is None:
            self.away_since = now

    def _handle(self, connection: Connection, message: Dict[str, Any]) -> None:
        if connection.proven:
            if isinstance(message.get("do"), str):
                self._directive = message
        elif "challenge" in message:
            hello = {"card": self._card._asdict(), "challenge": connection.challenge}
            text = json.dumps(hello)
            proof = compute_proof(self._key, "guest", str(message["challenge"]), text)
            connection.send({"hello": text, "proof": proof})
        elif "host" in message:
            expected_proof = compute_proof(
                self._key, "host", connection.challenge, str(message["host"])
            )
            if not is_proof(message.get("proof"), expected_proof):
                raise ConnectionBroken("the process at that address does not have the run's key")
            connection.proven = True
            self.away_since = self.last_problem = None
        elif "refused" in message:
            raise ConnectionBroken("node 0 refuses: %s" % message["refused"])
