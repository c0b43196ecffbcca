"""A command on a node of a HyperPod cluster, by a session of AWS Systems Manager: what it reads is sent, what it writes comes back.

``ssm:SendCommand`` knows no nodes of HyperPod, so AWS' own samples start sessions with ``AWS-StartInteractiveCommand``. They leave it at that; here the session's
data channel is opened too, as the session-manager-plugin does, for whether the command did its work is to be known. An account can start three sessions a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from hyperpod_jlab.aws.errors import Call
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.session_messages import (
    ACKNOWLEDGE,
    CLOSED,
    HANDSHAKE,
    HANDSHAKE_ANSWER,
    INPUT,
    OUTPUT,
    TEXT,
    Message,
    acknowledgement,
    packed,
    said,
    unpacked,
)
from hyperpod_jlab.model.errors import RefusedError, UnreachableError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

DOCUMENT = "AWS-StartInteractiveCommand"
"""AWS' session document for a command with a terminal."""

_VERSION = "1.2.792.0"
"""The version of the session-manager-plugin whose messages these are."""

_PIECE = 1024
"""Bytes of input in a message: the agent's own size."""

_AGAIN = 2.0
"""Seconds after which a message is sent again that nobody has acknowledged."""

_MOST = 64 * 1024 * 1024
"""Bytes of output that are kept."""


async def run(aws: Aws, target: str, command: str, ready: str, text: str, patience: float) -> str:
    """Run a command to its end.

    Args:
        aws: AWS in the cluster's region.
        target: The node, as ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE``.
        command: The command, for the node's shell. It has a terminal.
        ready: What it writes once it reads.
        text: What it is given to read then: lines.
        patience: Seconds until it is given up.

    Returns:
        What it wrote.

    Raises:
        RefusedError: The account wants sessions encrypted by KMS, which is not done here.
        UnreachableError: The node or its session does not answer.
        HyperpodError: See `aws.errors`.
    """
    given = {"Target": target, "DocumentName": DOCUMENT, "Parameters": {"command": [command]}}
    told = await aws.call("ssm", "StartSession", **given)
    try:
        async with asyncio.timeout(patience):
            headers = await _headers(aws, str(told["StreamUrl"]))
            return await _in_channel(told, headers, ready, text)
    except TimeoutError:
        raise _lost(target, f"it did not end in {patience:.0f} s") from None
    except OSError as error:
        raise _lost(target, str(error) or type(error).__name__) from error


async def _headers(aws: Aws, url: str) -> Mapping[str, str]:
    """The signature for opening the channel; nothing where the address has one."""
    if "X-Amz-Signature" in parse_qs(urlsplit(url).query):
        return {}
    return await aws.signed(Call("ssmmessages", "OpenDataChannel", await aws.region()), url)


async def _in_channel(
    told: Mapping[str, Any], headers: Mapping[str, str], ready: str, text: str
) -> str:
    """Open the channel, and be the terminal.

    Raises:
        OSError: It cannot be opened, or breaks off.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException

    opening = {
        "MessageSchemaVersion": "1.0",
        "RequestId": str(uuid.uuid4()),
        "TokenValue": told["TokenValue"],
        "ClientId": str(uuid.uuid4()),
        "ClientVersion": _VERSION,
    }
    try:
        async with connect(
            str(told["StreamUrl"]), additional_headers=dict(headers), max_size=None
        ) as connection:
            await connection.send(json.dumps(opening))
            return await _Terminal(connection, ready, text).run()
    except WebSocketException as error:
        raise OSError(f"its data channel: {error}") from error


class _Terminal:
    """The near end of a session: takes the output in its order, and sends the input piece by piece."""

    def __init__(self, connection: ClientConnection, ready: str, text: str) -> None:
        self._connection = connection
        self._ready, self._text = ready.encode(), text.encode()
        self._output = bytearray()
        self._expected = self._number = 0
        self._early: dict[int, Message] = {}
        self._acknowledged = asyncio.Event()
        self._turn = asyncio.Lock()
        self._senders: list[asyncio.Task[None]] = []

    async def run(self) -> str:
        """To the end of the session; the output."""
        try:
            await self._read()
        finally:
            for one in self._senders:
                one.cancel()
            await asyncio.gather(*self._senders, return_exceptions=True)
        return self._output.decode("utf-8", "replace")

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        async for data in self._connection:
            message = unpacked(data) if isinstance(data, bytes) else None
            if message is None:
                continue
            if message.kind == CLOSED:
                return
            if message.kind == ACKNOWLEDGE:
                if said(message.payload).get("AcknowledgedMessageSequenceNumber") == self._number:
                    self._acknowledged.set()
            elif message.kind == OUTPUT:
                with contextlib.suppress(ConnectionClosed):  # what it sent before is read yet
                    await self._connection.send(packed(acknowledgement(message)))
                self._early[message.number] = message
                while (following := self._early.pop(self._expected, None)) is not None:
                    self._expected += 1
                    self._take(following)

    def _take(self, message: Message) -> None:
        if message.payload_kind == HANDSHAKE:
            self._begin_to_send(_answer(said(message.payload)), HANDSHAKE_ANSWER)
        elif message.payload_kind == TEXT and len(self._output) < _MOST:
            self._output += message.payload
            if self._text and self._ready in self._output:
                text, self._text = self._text, b""
                self._begin_to_send(text, TEXT)

    def _begin_to_send(self, data: bytes, kind: int) -> None:
        self._senders.append(asyncio.create_task(self._send(data, kind)))

    async def _send(self, data: bytes, kind: int) -> None:
        """Send input, each piece until it has been acknowledged."""
        size = _PIECE if kind == TEXT else len(data)
        async with self._turn:
            for begin in range(0, len(data), size):
                piece = data[begin : begin + size]
                message = Message(INPUT, piece, self._number, kind)
                self._acknowledged.clear()
                while not self._acknowledged.is_set():
                    await self._connection.send(packed(message))
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._acknowledged.wait(), _AGAIN)
                self._number += 1


def _answer(request: Mapping[str, Any]) -> bytes:
    """The answer to a handshake.

    Raises:
        RefusedError: It asks for what is not done here.
    """
    actions = [str(one.get("ActionType")) for one in request.get("RequestedClientActions") or ()]
    if unknown := [one for one in actions if one != "SessionType"]:
        raise RefusedError(
            f"Systems Manager asks for {', '.join(unknown)} in sessions, which is not done here",
            code="session_encrypted",
            hint="sessions that KMS encrypts (Session Manager's preferences) are for the AWS CLI only",
        )
    done = [
        {"ActionType": one, "ActionStatus": 1, "ActionResult": None, "Error": ""} for one in actions
    ]
    told = {"ClientVersion": _VERSION, "ProcessedClientActions": done, "Errors": None}
    return json.dumps(told).encode()


def _lost(target: str, words: str) -> UnreachableError:
    return UnreachableError(
        f"the session on {target} was lost: {words}",
        code="session_lost",
        hint="run this again; does whoever runs it reach ssmmessages (an endpoint in a VPC without a way out)?",
    )
