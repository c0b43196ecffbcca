"""Messages of Session Manager's data channel, as AWS' session-manager-plugin writes them (its ``src/message``): a header of fixed fields, then the payload."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

INPUT, OUTPUT = "input_stream_data", "output_stream_data"
ACKNOWLEDGE, CLOSED = "acknowledge", "channel_closed"
"""Kinds of messages; all others may be left alone."""

TEXT, HANDSHAKE, HANDSHAKE_ANSWER = 1, 5, 6
"""Kinds of payloads."""

_HEAD = struct.Struct(">I32sIQqQ16s32sI")
"""Length of the header, kind, schema version, milliseconds since 1970, sequence number, flags, id, SHA-256 of the payload, the payload's kind."""

_LENGTH = struct.Struct(">I")
"""Length of the payload; the header's own length does not count it."""


@dataclass(frozen=True)
class Message:
    """A message.

    Attributes:
        kind: Such as ``output_stream_data``.
        payload: What it carries.
        number: Its place among those of its direction, from 0.
        payload_kind: What the payload is.
        ident: Its id.
    """

    kind: str
    payload: bytes
    number: int = 0
    payload_kind: int = 0
    ident: uuid.UUID = field(default_factory=uuid.uuid4)


def packed(message: Message) -> bytes:
    """A message as bytes."""
    # The halves of the id stand the other way round.
    ident = message.ident.bytes[8:] + message.ident.bytes[:8]
    digest = hashlib.sha256(message.payload).digest()
    flags = 3 if message.kind == ACKNOWLEDGE else 0
    kind, now = message.kind.ljust(32).encode(), int(time.time() * 1000)
    head = (_HEAD.size, kind, 1, now, message.number, flags, ident, digest, message.payload_kind)
    return _HEAD.pack(*head) + _LENGTH.pack(len(message.payload)) + message.payload


def unpacked(data: bytes) -> Message | None:
    """The message in these bytes; None: they are none that is whole."""
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
    """That a message has come."""
    told = {
        "AcknowledgedMessageType": message.kind,
        "AcknowledgedMessageId": str(message.ident),
        "AcknowledgedMessageSequenceNumber": message.number,
        "IsSequentialMessage": True,
    }
    return Message(ACKNOWLEDGE, json.dumps(told).encode())


def said(payload: bytes) -> Mapping[str, Any]:
    """What stands in a payload of JSON; nothing, where it is none."""
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
