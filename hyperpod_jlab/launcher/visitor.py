"""The other nodes' side of the meeting's connections."""

from __future__ import annotations

import json
import socket
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .meeting import Meeting
from .wire import BEAT, Broken, Card, Connection, is_proof, proof_of


class Dialer:
    """Looks the host's name up and connects, in a thread of its own: a name server may take its time."""

    EVERY = 1.0

    def __init__(self, address: str, port: int) -> None:
        self._address = address
        self._port = port
        self._made: List[socket.socket] = []
        self._busy = False
        self._next = 0.0
        self.trouble = "it was not tried yet"

    def take(self, now: float) -> Optional[socket.socket]:
        """A connection, once there is one; looks for one if need be."""
        if self._made:
            return self._made.pop()
        if not self._busy and now >= self._next:
            import threading

            self._busy, self._next = True, now + self.EVERY
            threading.Thread(target=self._connect, name="dialer", daemon=True).start()
        return None

    def _connect(self) -> None:
        try:
            self._made.append(socket.create_connection((self._address, self._port), timeout=5.0))
        except OSError as error:
            self.trouble = str(error)
        finally:
            self._busy = False


class Visitor:
    """The side of every other node: its connection to node 0, made again as often as it is cut."""

    def __init__(self, card: Card, key: bytes, dialer: Dialer) -> None:
        self._card = card
        self._key = key
        self.dialer = dialer
        self._connection: Optional[Connection] = None
        self._directive: Dict[str, Any] = {"do": "wait"}
        self.away_since: Optional[float] = time.monotonic()
        """Since when node 0 was not heard of; None while it is connected."""
        self.trouble: Optional[str] = None
        self._told: Optional[Mapping[str, Any]] = None

    @property
    def sockets(self) -> Tuple[List[socket.socket], List[socket.socket]]:
        """What to wait for: to be read, to be written."""
        if self._connection is None:
            return [], []
        sock = self._connection.sock
        return [sock], [sock] if self._connection.wants_to_write else []

    def directive(self, now: float) -> Dict[str, Any]:
        """What is to be done, as node 0 said last; without it nothing goes on for long."""
        if self.away_since is not None and now - self.away_since > Meeting.RETURN:
            return {"do": "wait"}
        return self._directive

    def turn(self, now: float) -> None:
        """Connect, and take in what is said."""
        try:
            if self._connection is None:
                sock = self.dialer.take(now)
                if sock is None:
                    return
                self._connection = Connection(sock)
            self._connection.flush()
            for message in self._connection.receive():
                self._take(self._connection, message)
            self._connection.check(now)
        except Broken as error:
            self._cut(str(error), now)

    def tell(self, state: Mapping[str, Any], now: float) -> None:
        """Say how things stand here, when it has changed or for a sign of life."""
        connection = self._connection
        if connection is None or not connection.proven:
            return
        if state == self._told and now - connection.beaten < BEAT:
            return
        try:
            connection.beaten, self._told = now, dict(state)
            connection.send({"state": state})
        except Broken as error:
            self._cut(str(error), now)

    def close(self) -> None:
        """End it."""
        if self._connection is not None:
            self._connection.close()

    def _cut(self, why: str, now: float) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._told = None
        self.trouble = why
        if self.away_since is None:
            self.away_since = now

    def _take(self, connection: Connection, message: Dict[str, Any]) -> None:
        if connection.proven:
            if isinstance(message.get("do"), str):
                self._directive = message
        elif "challenge" in message:
            mine = {"card": self._card._asdict(), "challenge": connection.challenge}
            text = json.dumps(mine)
            proof = proof_of(self._key, "guest", str(message["challenge"]), text)
            connection.send({"hello": text, "proof": proof})
        elif "host" in message:
            wanted = proof_of(self._key, "host", connection.challenge, str(message["host"]))
            if not is_proof(message.get("proof"), wanted):
                raise Broken("the process at that address does not have the run's key")
            connection.proven = True
            self.away_since = self.trouble = None
        elif "refused" in message:
            raise Broken("node 0 refuses: %s" % message["refused"])
