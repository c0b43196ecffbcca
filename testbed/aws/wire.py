"""The protocols in which services are spoken to: JSON 1.1, and query with XML."""

from __future__ import annotations

import json
from datetime import datetime
from email.message import Message
from typing import Any, Protocol
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET

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
    """JSON 1.1: the operation in a header, everything else in one document."""

    def __init__(self, model: Any) -> None:
        self._prefix = f"{model.metadata['targetPrefix']}."
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


class QueryWire:
    """A form with the operation in it; answers are XML. Only inputs and outputs of plain text members are known here."""

    def __init__(self, model: Any) -> None:
        self._version = model.metadata["apiVersion"]
        self._namespace = model.metadata["xmlNamespace"]

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""
        del headers
        given: dict[str, Any] = dict(parse_qsl(body.decode(), keep_blank_values=True))
        operation = given.pop("Action", "")
        if given.pop("Version", "") != self._version:
            raise ApiError("InvalidAction", f"Could not find operation {operation}", 404)
        return operation, given

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        root = ET.Element(f"{operation.name}Response", xmlns=self._namespace)
        result = ET.SubElement(root, operation.output_shape.serialization["resultWrapper"])
        for name, value in answer.items():
            ET.SubElement(result, name).text = value
        about = ET.SubElement(root, "ResponseMetadata")
        ET.SubElement(about, "RequestId").text = request_id
        return self._reply(200, root)

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""
        root = ET.Element("ErrorResponse", xmlns=self._namespace)
        about = ET.SubElement(root, "Error")
        ET.SubElement(about, "Type").text = "Sender" if error.status < 500 else "Receiver"
        ET.SubElement(about, "Code").text = error.code
        ET.SubElement(about, "Message").text = error.message
        ET.SubElement(root, "RequestId").text = request_id
        return self._reply(error.status, root)

    @staticmethod
    def _reply(status: int, root: ET.Element) -> Reply:
        return Reply(status, ET.tostring(root, encoding="utf-8"), {"Content-Type": "text/xml"})


def _seconds(value: Any) -> float:
    """A time as JSON 1.1 has it."""
    if isinstance(value, datetime):
        return value.timestamp()
    raise TypeError(f"{type(value).__name__} has no place in an answer")
