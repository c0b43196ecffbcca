"""Node 0's side of the meeting's connections."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .errors import LauncherError
from .meeting import Meeting, NodeState
from .wire import BEAT, Broken, Card, Connection, is_proof, proof_of

STRANGERS = 64
"""Most connections that have not proven themselves; the oldest gives way."""


def listen(port: int, patience: float) -> socket.socket:
    """Listen on all addresses of this node.

    Raises:
        LauncherError: The port is taken, and stays so.
    """
    deadline = time.monotonic() + patience
    said = ""
    while True:
        for family in (socket.AF_INET6, socket.AF_INET):
            try:
                dual = family == socket.AF_INET6
                listener = socket.create_server(
                    ("", port), family=family, backlog=512, dualstack_ipv6=dual
                )
            except (OSError, ValueError) as error:  # the latter: there is no IPv6
                said = str(error)
                continue
            listener.setblocking(False)
            return listener
        if time.monotonic() >= deadline:
            hint = "if pods use the host's network, another run may use the port on the same node"
            text = "cannot listen on the rendezvous port %d: %s" % (port, said)
            raise LauncherError("meeting_port", text, hint)
        time.sleep(0.5)


class Host:
    """Node 0's side: all connections of the others."""

    def __init__(self, card: Card, key: bytes, listener: socket.socket, meeting: Meeting) -> None:
        self._card = card
        self._key = key
        self._listener = listener
        self._meeting = meeting
        self._told: Dict[str, Any] = {}
        self._connections: Dict[Connection, Optional[Card]] = {}
        self._complaints: Dict[str, float] = {}
        self._note: Callable[[str], None] = meeting.note

    @property
    def sockets(self) -> Tuple[List[socket.socket], List[socket.socket]]:
        """What to wait for: to be read, to be written."""
        writing = [one.sock for one in self._connections if one.wants_to_write]
        return [self._listener, *(one.sock for one in self._connections)], writing

    @property
    def guests(self) -> int:
        """How many nodes are connected."""
        return sum(card is not None for card in self._connections.values())

    def turn(self, now: float) -> None:
        """Take in what was said, and say what is to be done."""
        self._accept()
        for connection in list(self._connections):
            self._guarded(self._listen_to, connection, now)

    def announce(self, now: float) -> None:
        """Tell the directive to those who have not heard it yet, or not for a while."""
        directive = self._meeting.directive
        changed, self._told = self._told != directive, directive
        for connection, card in list(self._connections.items()):
            if card is not None and (changed or now - connection.beaten >= BEAT):
                self._guarded(self._tell, connection, now)

    def close(self) -> None:
        """End all."""
        self._listener.close()
        for connection in self._connections:
            connection.close()
        self._connections = {}

    def _tell(self, connection: Connection, now: float) -> None:
        connection.beaten = now
        connection.send(self._meeting.directive)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            strangers = [one for one, card in self._connections.items() if card is None]
            if len(strangers) >= STRANGERS:
                self._drop(strangers[0])
            connection = Connection(sock)
            self._connections[connection] = None
            self._guarded(self._challenge, connection, connection.since)

    def _challenge(self, connection: Connection, _: float) -> None:
        connection.send({"hyperpod": 1, "challenge": connection.challenge})

    def _guarded(
        self, act: Callable[[Connection, float], None], connection: Connection, now: float
    ) -> None:
        try:
            act(connection, now)
        except Broken as error:
            self._drop(connection, str(error))

    def _drop(self, connection: Connection, why: str = "") -> None:
        card = self._connections.pop(connection, None)
        connection.close()
        if card is not None:
            self._meeting.cut(card.node_rank, card.instance, time.monotonic())
        elif why:
            self._complain("a connection without the run's key was closed: " + why)

    def _complain(self, text: str) -> None:
        now = time.monotonic()
        if now - self._complaints.get(text, float("-inf")) > 60.0 and len(self._complaints) < 100:
            self._complaints[text] = now
            self._note(text)

    def _listen_to(self, connection: Connection, now: float) -> None:
        connection.flush()
        for message in connection.receive():
            card = self._connections[connection]
            if card is None:
                self._welcome(connection, message)
            elif "state" in message and isinstance(message["state"], dict):
                self._meeting.tell(card.node_rank, NodeState.load(message["state"]))
        connection.check(now)

    def _welcome(self, connection: Connection, message: Mapping[str, Any]) -> None:
        """See who it is."""
        text = message.get("hello")
        if not isinstance(text, str):
            raise Broken("it did not identify itself")
        wanted = proof_of(self._key, "guest", connection.challenge, text)
        if not is_proof(message.get("proof"), wanted):
            raise Broken("it does not have the run's key")
        connection.proven = True
        try:
            hello = json.loads(text)
            card = Card(**hello["card"])
            challenge = str(hello["challenge"])
        except (ValueError, TypeError, KeyError):
            raise Broken("it sent an invalid message") from None
        self._check(connection, card)
        answer = proof_of(self._key, "host", challenge, self._card.instance)
        connection.send({"host": self._card.instance, "proof": answer})
        for other, its in list(self._connections.items()):
            if its is not None and its.node_rank == card.node_rank:
                del self._connections[other]  # an old connection, or an older pod's
                other.close()
        if not self._meeting.join(card.node_rank, card.instance, card.born, card.name):
            connection.send({"do": "gone"})
            raise Broken("a newer pod replaced it")
        self._connections[connection] = card
        self._tell(connection, time.monotonic())

    def _check(self, connection: Connection, card: Card) -> None:
        mine = self._card
        ranks = range(1, mine.nodes)
        if (card.run_id, card.nodes) == (mine.run_id, mine.nodes) and card.node_rank in ranks:
            return
        text = "it is node %s of %s of the run %s" % (card.node_rank, card.nodes, card.run_id)
        with contextlib.suppress(Broken):
            connection.send({"refused": text})
        raise Broken(text)
