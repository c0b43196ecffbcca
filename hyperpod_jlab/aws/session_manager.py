"""The user of AWS Systems Manager sessions on nodes: the account's preferences in a region, and the role's tag.

The tag takes precedence over the preferences' default user; without Run As a session on HyperPod runs as root (AWS:
"Turn on Run As support for Linux and macOS managed nodes").
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import struct
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from hyperpod_jlab.aws.errors import AwsCall
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import NotFoundError, RefusedError, UnreachableError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

RUN_AS = "SSMSessionRunAs"
"""The role's tag that names the user."""

_PREFERENCES = "SSM-SessionManagerRunShell"


@dataclass(frozen=True)
class SessionPreferences:
    """Session Manager's preferences about the user of a session.

    Attributes:
        run_as: Whether sessions run as a named user.
        default_user: The user for a role without a tag; None: no session starts then.
    """

    run_as: bool = False
    default_user: str | None = None


async def session_preferences(aws: Aws) -> SessionPreferences:
    """The preferences of the account in a region; the defaults if none were saved.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    try:
        response = await aws.call("ssm", "GetDocument", Name=_PREFERENCES, DocumentFormat="JSON")
    except NotFoundError:
        return SessionPreferences()
    inputs = json.loads(response["Content"]).get("inputs") or {}
    # Some tools write the switch as a string.
    is_enabled = str(inputs.get("runAsEnabled", "")).lower() == "true"
    return SessionPreferences(is_enabled, inputs.get("runAsDefaultUser") or None)


async def find_run_as(aws: Aws, role: str) -> str | None:
    """The user in a role's tag; None without the tag.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("iam", "ListRoleTags", RoleName=role)
    return next((str(tag["Value"]) for tag in response["Tags"] if tag["Key"] == RUN_AS), None)


# --------------------------------------------------------------------------------------------------
# Messages of Session Manager's data channel, in the format of AWS' session-manager-plugin (its
# ``src/message``): a fixed header, then the payload.

INPUT, OUTPUT = "input_stream_data", "output_stream_data"
ACKNOWLEDGE, CLOSED = "acknowledge", "channel_closed"
"""Types of messages; all others can be ignored."""

TEXT, HANDSHAKE, HANDSHAKE_ANSWER = 1, 5, 6
"""Types of payloads."""

_HEAD = struct.Struct(">I32sIQqQ16s32sI")
"""Header: length, type, schema version, milliseconds since 1970, sequence number, flags, id, SHA-256 of the payload, payload type."""

_LENGTH = struct.Struct(">I")
"""Length of the payload; not included in the header's own length."""


@dataclass(frozen=True)
class Message:
    """A message.

    Attributes:
        kind: Its type, such as ``output_stream_data``.
        payload: Its payload.
        number: Its sequence number in its direction, from 0.
        payload_kind: The payload's type.
        ident: Its id.
    """

    kind: str
    payload: bytes
    number: int = 0
    payload_kind: int = 0
    ident: uuid.UUID = field(default_factory=uuid.uuid4)


def pack_message(message: Message) -> bytes:
    """A message as bytes."""
    # The halves of the id are swapped.
    ident = message.ident.bytes[8:] + message.ident.bytes[:8]
    digest = hashlib.sha256(message.payload).digest()
    flags = 3 if message.kind == ACKNOWLEDGE else 0
    kind, now = message.kind.ljust(32).encode(), int(time.time() * 1000)
    head = (_HEAD.size, kind, 1, now, message.number, flags, ident, digest, message.payload_kind)
    return _HEAD.pack(*head) + _LENGTH.pack(len(message.payload)) + message.payload


def unpack_message(data: bytes) -> Message | None:
    """Parse a message; None if it is invalid or incomplete."""
    if len(data) < _HEAD.size + _LENGTH.size:
        return None
    length, kind, _, _, number, _, ident, digest, payload_kind = _HEAD.unpack_from(data)
    if not _HEAD.size <= length <= len(data) - _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(data, length)
    payload = data[length + _LENGTH.size :][:size]
    if len(payload) != size or (size and hashlib.sha256(payload).digest() != digest):
        return None
    name = kind.decode("ascii", "replace").strip(" \0")
    return Message(name, payload, number, payload_kind, uuid.UUID(bytes=ident[8:] + ident[:8]))


def acknowledgement(message: Message) -> Message:
    """The acknowledgement of a message."""
    content = {
        "AcknowledgedMessageType": message.kind,
        "AcknowledgedMessageId": str(message.ident),
        "AcknowledgedMessageSequenceNumber": message.number,
        "IsSequentialMessage": True,
    }
    return Message(ACKNOWLEDGE, json.dumps(content).encode())


def parse_payload(payload: bytes) -> Mapping[str, Any]:
    """The object of a JSON payload; empty if it is not JSON."""
    try:
        content = json.loads(payload)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


# --------------------------------------------------------------------------------------------------
# Run a command on a node of a HyperPod cluster through an AWS Systems Manager session, with input
# and output.
#
# ``ssm:SendCommand`` does not support HyperPod nodes, so AWS' own samples start sessions with
# ``AWS-StartInteractiveCommand`` and stop there. We also open the
# data channel, like the session-manager-plugin, to learn whether the command succeeded. An account
# can start three sessions a second.

DOCUMENT = "AWS-StartInteractiveCommand"
"""AWS' session document for a command with a terminal."""

_VERSION = "1.2.792.0"
"""The version of the session-manager-plugin whose message format this is."""

_CHUNK_SIZE = 1024
"""Bytes of input per message: the agent's own size."""

_RESEND_S = 2.0
"""Seconds before an unacknowledged message is sent again."""

_MAX_OUTPUT = 64 * 1024 * 1024
"""Maximum bytes of output that are kept."""


async def run(aws: Aws, target: str, command: str, ready: str, text: str, timeout_s: float) -> str:
    """Run a command until it ends.

    Args:
        aws: AWS in the cluster's region.
        target: The node, as ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE``.
        command: The command, for the node's shell. It has a terminal.
        ready: The output that shows that it reads its input.
        text: Its input: lines.
        timeout_s: Timeout in seconds.

    Returns:
        Its output.

    Raises:
        RefusedError: The account requires sessions encrypted by KMS, which is not supported here.
        UnreachableError: The node or its session does not answer.
        HyperpodError: See `aws.errors`.
    """
    parameters = {"Target": target, "DocumentName": DOCUMENT, "Parameters": {"command": [command]}}
    response = await aws.call("ssm", "StartSession", **parameters)
    try:
        async with asyncio.timeout(timeout_s):
            headers = await _headers(aws, str(response["StreamUrl"]))
            return await _run_in_channel(response, headers, ready, text)
    except TimeoutError:
        raise _session_error(
            f"the session on {target} did not end within {timeout_s:.0f} s"
        ) from None
    except OSError as error:
        reason = str(error) or type(error).__name__
        raise _session_error(f"the session on {target} was lost: {reason}") from error


async def _headers(aws: Aws, url: str) -> Mapping[str, str]:
    """The signature headers for opening the channel; empty if the URL contains the signature."""
    if "X-Amz-Signature" in parse_qs(urlsplit(url).query):
        return {}
    return await aws.signed(AwsCall("ssmmessages", "OpenDataChannel", await aws.region()), url)


async def _run_in_channel(
    session: Mapping[str, Any], headers: Mapping[str, str], ready: str, text: str
) -> str:
    """Open the channel, and act as the terminal.

    Raises:
        OSError: It cannot be opened, or breaks.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException

    open_request = {
        "MessageSchemaVersion": "1.0",
        "RequestId": str(uuid.uuid4()),
        "TokenValue": session["TokenValue"],
        "ClientId": str(uuid.uuid4()),
        "ClientVersion": _VERSION,
    }
    try:
        async with connect(
            str(session["StreamUrl"]), additional_headers=dict(headers), max_size=None
        ) as connection:
            await connection.send(json.dumps(open_request))
            return await _Terminal(connection, ready, text).run()
    except WebSocketException as error:
        raise OSError(f"its data channel: {error}") from error


class _Terminal:
    """The local end of a session: orders the output, and sends the input piece by piece."""

    def __init__(self, connection: ClientConnection, ready: str, text: str) -> None:
        self._connection = connection
        self._ready, self._text = ready.encode(), text.encode()
        self._output = bytearray()
        self._next_number = self._number = 0
        self._out_of_order: dict[int, Message] = {}
        self._acknowledged = asyncio.Event()
        self._wake = asyncio.Lock()
        self._senders: list[asyncio.Task[None]] = []

    async def run(self) -> str:
        """Run until the session ends; returns the output."""
        try:
            await self._read()
        finally:
            for task in self._senders:
                task.cancel()
            await asyncio.gather(*self._senders, return_exceptions=True)
        return self._output.decode("utf-8", "replace")

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        async for data in self._connection:
            message = unpack_message(data) if isinstance(data, bytes) else None
            if message is None:
                continue
            if message.kind == CLOSED:
                return
            if message.kind == ACKNOWLEDGE:
                if (
                    parse_payload(message.payload).get("AcknowledgedMessageSequenceNumber")
                    == self._number
                ):
                    self._acknowledged.set()
            elif message.kind == OUTPUT:
                with contextlib.suppress(ConnectionClosed):  # earlier messages are still read
                    await self._connection.send(pack_message(acknowledgement(message)))
                self._out_of_order[message.number] = message
                while (following := self._out_of_order.pop(self._next_number, None)) is not None:
                    self._next_number += 1
                    self._handle(following)

    def _handle(self, message: Message) -> None:
        if message.payload_kind == HANDSHAKE:
            self._start_sending(
                _handshake_response(parse_payload(message.payload)), HANDSHAKE_ANSWER
            )
        elif message.payload_kind == TEXT and len(self._output) < _MAX_OUTPUT:
            self._output += message.payload
            if self._text and self._ready in self._output:
                text, self._text = self._text, b""
                self._start_sending(text, TEXT)

    def _start_sending(self, data: bytes, kind: int) -> None:
        self._senders.append(asyncio.create_task(self._send(data, kind)))

    async def _send(self, data: bytes, kind: int) -> None:
        """Send input; waits for each piece's acknowledgement."""
        size = _CHUNK_SIZE if kind == TEXT else len(data)
        async with self._wake:
            for begin in range(0, len(data), size):
                chunk = data[begin : begin + size]
                message = Message(INPUT, chunk, self._number, kind)
                self._acknowledged.clear()
                while not self._acknowledged.is_set():
                    await self._connection.send(pack_message(message))
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._acknowledged.wait(), _RESEND_S)
                self._number += 1


def _handshake_response(request: Mapping[str, Any]) -> bytes:
    """The response to a handshake.

    Raises:
        RefusedError: It requests something that is not supported here.
    """
    actions = [
        str(action.get("ActionType")) for action in request.get("RequestedClientActions") or ()
    ]
    if unknown := [action for action in actions if action != "SessionType"]:
        raise RefusedError(
            f"Systems Manager requires {', '.join(unknown)} in sessions, which is not supported",
            code="session_encrypted",
            hint="use the AWS CLI, or ask your administrator to turn off KMS encryption in the Session Manager preferences",
        )
    processed = [
        {"ActionType": action, "ActionStatus": 1, "ActionResult": None, "Error": ""}
        for action in actions
    ]
    response = {"ClientVersion": _VERSION, "ProcessedClientActions": processed, "Errors": None}
    return json.dumps(response).encode()


def _session_error(message: str) -> UnreachableError:
    return UnreachableError(
        message,
        code="session_lost",
        hint="run the command again; check that this machine can reach ssmmessages (a VPC without internet access needs an endpoint)",
    )
