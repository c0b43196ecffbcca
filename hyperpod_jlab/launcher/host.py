"""Node 0's side of the meeting's connections."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .errors import LauncherError
from .meeting import Coordinator, NodeState
from .wire import HEARTBEAT_S, Connection, ConnectionBroken, PeerInfo, compute_proof, is_proof

STRANGERS = 64
"""Most connections that have not proven themselves; the oldest gives way."""


def listen(port: int, timeout: float) -> socket.socket:
    """Listen on all addresses of this node.

    Raises:
        LauncherError: The port is taken, and stays so.
    """
    deadline = time.monotonic() + timeout
    problem = ""
    while True:
        for family in (socket.AF_INET6, socket.AF_INET):
            try:
                dual = family == socket.AF_INET6
                listener = socket.create_server(
                    ("", port), family=family, backlog=512, dualstack_ipv6=dual
                )
            except (OSError, ValueError) as error:  # the latter: there is no IPv6
                problem = str(error)
                continue
            listener.setblocking(False)
            return listener
        if time.monotonic() >= deadline:
            hint = "if pods use the host's network, another run may use the port on the same node"
            text = "cannot listen on the rendezvous port %d: %s" % (port, problem)
            raise LauncherError("meeting_port", text, hint)
        time.sleep(0.5)


class CoordinatorServer:
    """Node 0's side: all connections of the others."""

    def __init__(
        self, card: PeerInfo, key: bytes, listener: socket.socket, coordinator: Coordinator
    ) -> None:
        self._card = card
        self._key = key
        self._listener = listener
        self._coordinator = coordinator
        self._announced: Dict[str, Any] = {}
        self._connections: Dict[Connection, Optional[PeerInfo]] = {}
        self._warned_at: Dict[str, float] = {}
        self._log_note: Callable[[str], None] = coordinator.log_note

    @property
    def sockets(self) -> Tuple[List[socket.socket], List[socket.socket]]:
        """What to wait for: to be read, to be written."""
        writing = [entry.sock for entry in self._connections if entry.has_outgoing]
        return [self._listener, *(entry.sock for entry in self._connections)], writing

    def poll(self, now: float) -> None:
        """Take in what was said, and say what is to be done."""
        self._accept()
        for connection in list(self._connections):
            self._run_guarded(self._receive, connection, now)

    def announce(self, now: float) -> None:
        """Tell the directive to those who have not heard it yet, or not for a while."""
        directive = self._coordinator.directive
        changed, self._announced = self._announced != directive, directive
        for connection, card in list(self._connections.items()):
            if card is not None and (changed or now - connection.beaten >= HEARTBEAT_S):
                self._run_guarded(self._send_directive, connection, now)

    def close(self) -> None:
        """End all."""
        self._listener.close()
        for connection in self._connections:
            connection.close()
        self._connections = {}

    def _send_directive(self, connection: Connection, now: float) -> None:
        connection.beaten = now
        connection.send(self._coordinator.directive)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            unidentified = [entry for entry, card in self._connections.items() if card is None]
            if len(unidentified) >= STRANGERS:
                self._disconnect(unidentified[0])
            connection = Connection(sock)
            self._connections[connection] = None
            self._run_guarded(self._challenge, connection, connection.opened_at)

    def _challenge(self, connection: Connection, _: float) -> None:
        connection.send({"hyperpod": 1, "challenge": connection.challenge})

    def _run_guarded(
        self, action: Callable[[Connection, float], None], connection: Connection, now: float
    ) -> None:
        try:
            action(connection, now)
        except ConnectionBroken as error:
            self._disconnect(connection, str(error))

    def _disconnect(self, connection: Connection, reason: str = "") -> None:
        card = self._connections.pop(connection, None)
        connection.close()
        if card is not None:
            self._coordinator.disconnect(card.node_rank, card.instance, time.monotonic())
        elif reason:
            self._warn("a connection without the run's key was closed: " + reason)

    def _warn(self, text: str) -> None:
        now = time.monotonic()
        if now - self._warned_at.get(text, float("-inf")) > 60.0 and len(self._warned_at) < 100:
            self._warned_at[text] = now
            self._log_note(text)

    def _receive(self, connection: Connection, now: float) -> None:
        connection.flush()
        for message in connection.receive():
            card = self._connections[connection]
            if card is None:
                self._welcome(connection, message)
            elif "state" in message and isinstance(message["state"], dict):
                self._coordinator.update_state(card.node_rank, NodeState.load(message["state"]))
            elif "bye" in message:
                self._coordinator.leave(card.node_rank)
        connection.check(now)

    def _welcome(self, connection: Connection, message: Mapping[str, Any]) -> None:
        """See who it is."""
        text = message.get("hello")
        if not isinstance(text, str):
            raise ConnectionBroken("it did not identify itself")
        expected_proof = compute_proof(self._key, "guest", connection.challenge, text)
        if not is_proof(message.get("proof"), expected_proof):
            raise ConnectionBroken("it does not have the run's key")
        connection.proven = True
        try:
            hello = json.loads(text)
            card = PeerInfo(**hello["card"])
            challenge = str(hello["challenge"])
        except (ValueError, TypeError, KeyError):
            raise ConnectionBroken("it sent an invalid message") from None
        self._check(connection, card)
        proof = compute_proof(self._key, "host", challenge, self._card.instance)
        connection.send({"host": self._card.instance, "proof": proof})
        for other_connection, other_info in list(self._connections.items()):
            if other_info is not None and other_info.node_rank == card.node_rank:
                del self._connections[other_connection]  # an old connection, or an older pod's
                other_connection.close()
        if not self._coordinator.join(card.node_rank, card.instance, card.born, card.name):
            connection.send({"do": "gone"})
            raise ConnectionBroken("a newer pod replaced it")
        self._connections[connection] = card
        self._send_directive(connection, time.monotonic())

    def _check(self, connection: Connection, card: PeerInfo) -> None:
        own_info = self._card
        ranks = range(1, own_info.nodes)
        if (card.run_id, card.nodes) == (
            own_info.run_id,
            own_info.nodes,
        ) and card.node_rank in ranks:
            return
        text = "it is node %s of %s of the run %s" % (card.node_rank, card.nodes, card.run_id)
        with contextlib.suppress(ConnectionBroken):
            connection.send({"refused": text})
        raise ConnectionBroken(text)
