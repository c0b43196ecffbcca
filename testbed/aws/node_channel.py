"""The far end of Session Manager's sessions on nodes: the message service and the agent in one, with this machine as the node.

Messages are as AWS' session-manager-plugin reads and writes them (which was tried against this); a command runs in a terminal of its own.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from hyperpod_jlab.aws import session_manager as messages
from testbed.aws.state import Account

_HANDSHAKE_DONE = 7


@dataclass
class NodeChannel:
    """As a context manager: answers the account's sessions.

    Attributes:
        account: The account.
        words: What commands run in, such as ``unshare``; the command comes last.
        actions: What the handshake asks for.
        loses: The first messages of input that are not acknowledged, as if they were lost.
        turned: Whether the output's first messages come in the wrong order, and one of them twice.
        headers: The headers with which channels were opened.
        breaks: How many of the next channels break off before the command is run.
        ran: The commands that were run.
    """

    account: Account
    words: Sequence[str] = ("sh", "-c")
    actions: Sequence[str] = ("SessionType",)
    loses: int = 0
    turned: bool = False
    breaks: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server: Server = serve(self._session, "127.0.0.1", 0)
        port = self._server.socket.getsockname()[1]
        self.account.node_channel = f"ws://127.0.0.1:{port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.account.node_channel = None
        self._server.shutdown()
        self._thread.join()

    def _session(self, connection: ServerConnection) -> None:
        request = connection.request
        headers = request.headers.raw_items() if request is not None else ()
        self.headers.append({name.lower(): value for name, value in headers})
        opening = json.loads(connection.recv())
        document, commands = self.account.sessions.pop(opening["TokenValue"], (None, []))
        if document != "AWS-StartInteractiveCommand" or len(commands) != 1:
            connection.close(1008, "no such session")
            return
        if self.breaks:
            self.breaks -= 1
            return
        with suppress(ConnectionClosed):
            _Agent(self, connection, commands[0]).run()


class _Agent:
    def __init__(self, channel: NodeChannel, connection: ServerConnection, command: str) -> None:
        self._channel, self._connection, self._command = channel, connection, command
        self._number = self._expected = 0
        self._losses = channel.loses
        self._sending = threading.Lock()

    def run(self) -> None:
        asked = [
            {
                "ActionType": one,
                "ActionParameters": {
                    "SessionType": "InteractiveCommands",
                    "Properties": {"commands": self._command},
                },
            }
            for one in self._channel.actions
        ]
        told = {"AgentVersion": "3.3.0.0", "RequestedClientActions": asked}
        self._send(json.dumps(told).encode(), messages.HANDSHAKE)
        answer = self._received(messages.HANDSHAKE_ANSWER)
        if not all(
            one["ActionStatus"] == 1 for one in json.loads(answer)["ProcessedClientActions"]
        ):
            return
        done = {"HandshakeTimeToComplete": 1000000, "CustomerMessage": ""}
        self._send(json.dumps(done).encode(), _HANDSHAKE_DONE)
        self._run_command()

    def _run_command(self) -> None:
        self._channel.ran.append(self._command)
        near, far = pty.openpty()
        process = subprocess.Popen(
            [*self._channel.words, self._command],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "TERM": "xterm-256color"},
        )
        os.close(far)
        writer = threading.Thread(target=self._type, args=(near,), daemon=True)
        writer.start()
        with suppress(OSError):  # the terminal is closed when the last process of it ends
            while data := os.read(near, 1024):
                self._send(data, messages.TEXT)
        process.wait()
        closed = {"MessageType": "channel_closed", "Output": "", "SchemaVersion": 1}
        self._put(messages.Message(messages.CLOSED, json.dumps(closed).encode()))
        self._connection.close()
        writer.join()
        os.close(near)

    def _type(self, near: int) -> None:
        with suppress(ConnectionClosed, OSError):
            while True:
                os.write(near, self._received(messages.TEXT))

    def _received(self, kind: int) -> bytes:
        """The next input of a kind, each once and in its order."""
        while True:
            data = self._connection.recv()
            message = messages.unpack_message(data) if isinstance(data, bytes) else None
            if message is None or message.kind != messages.INPUT:
                continue
            if self._losses and message.payload_kind == messages.TEXT:
                self._losses -= 1
                continue
            self._put(messages.acknowledgement(message))
            if message.number != self._expected:
                continue
            self._expected += 1
            if message.payload_kind == kind:
                return message.payload

    def _send(self, payload: bytes, kind: int) -> None:
        message = messages.Message(messages.OUTPUT, payload, self._number, kind, uuid.uuid4())
        self._number += 1
        if self._channel.turned and kind == messages.TEXT and len(payload) > 1:
            half = len(payload) // 2
            last = messages.Message(messages.OUTPUT, payload[half:], self._number, kind)
            first = messages.Message(messages.OUTPUT, payload[:half], message.number, kind)
            self._number += 1
            for one in (last, first, first):
                self._put(one)
            return
        self._put(message)

    def _put(self, message: messages.Message) -> None:
        with self._sending:
            self._connection.send(messages.pack_message(message))
