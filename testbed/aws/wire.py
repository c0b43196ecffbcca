"""How services are spoken to, and the protocol of most: JSON."""

from __future__ import annotations

import json
from datetime import datetime
from email.message import Message
from typing import Any, Protocol

from testbed.aws.replies import ApiError, Reply


class Wire(Protocol):
    """How requests of one service are read, and answers written."""

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""


class JsonWire:
    """JSON 1.0 and 1.1: the operation in a header, everything else in one document."""

    def __init__(self, model: Any) -> None:
        self._prefix = f"{model.metadata.get('targetPrefix', '')}."  # REST has none
        self._type = f"application/x-amz-json-{model.metadata['jsonVersion']}"

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""
        target = headers.get("X-Amz-Target", "")
        if not target.startswith(self._prefix):
            raise ApiError("UnknownOperationException", f"no target: {target!r}")
        if headers.get("Content-Type", "") != self._type:
            raise ApiError("SerializationException", f"the content type is not {self._type}")
        try:
            given = json.loads(body or b"{}")
        except ValueError as error:
            raise ApiError("SerializationException", f"this is no JSON: {error}") from error
        return target.removeprefix(self._prefix), given

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        del operation
        text = json.dumps(answer, default=_seconds)
        return Reply(200, text.encode(), self._headers(request_id))

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""
        text = json.dumps({"__type": error.code, "message": error.message})
        return Reply(error.status, text.encode(), self._headers(request_id))

    def _headers(self, request_id: str) -> dict[str, str]:
        return {"Content-Type": self._type, "x-amzn-RequestId": request_id}


def _seconds(value: Any) -> float:
    """A time as JSON 1.1 has it."""
    if isinstance(value, datetime):
        return value.timestamp()
    raise TypeError(f"{type(value).__name__} has no place in an answer")
