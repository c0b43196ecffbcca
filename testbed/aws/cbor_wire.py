"""Smithy's RPC in CBOR: the operation in the path, everything else in CBOR.

The coding is botocore's own, of which no part is public.
"""

# ruff: noqa: SLF001

from __future__ import annotations

from email.message import Message
from typing import Any

from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from testbed.aws.replies import ApiError, Reply

PROTOCOL = "smithy-rpc-v2-cbor"


class CborWire:
    """One service in this protocol.

    Args:
        model: The service in botocore's model.
        path: The request's path.
    """

    def __init__(self, model: Any, path: str) -> None:
        self._path = path
        self._prefix = f"/service/{model.metadata['targetPrefix']}/operation/"
        self._writer: Any = create_serializer(PROTOCOL, False)

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""
        if headers.get("Content-Type", "") != "application/cbor":
            raise ApiError("SerializationException", "the content type is not application/cbor")
        if not self._path.startswith(self._prefix):
            raise ApiError("UnknownOperationException", f"no operation: {self._path!r}")
        reader: Any = create_parser(PROTOCOL)
        reader._timestamp_parser = float  # times stay numbers, as in JSON
        return self._path.removeprefix(self._prefix), reader._initial_body_parse(body) or {}

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        body = self._writer._serialize_body_params(answer, operation.output_shape)
        return Reply(200, bytes(body), self._headers(request_id))

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error: a map of two texts."""
        body = bytearray(b"\xa2")
        for text in ("__type", error.code, "message", error.message):
            self._writer._serialize_type_string(body, text, None, None)
        return Reply(error.status, bytes(body), self._headers(request_id))

    @staticmethod
    def _headers(request_id: str) -> dict[str, str]:
        return {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor", "x-amzn-RequestId": request_id}
