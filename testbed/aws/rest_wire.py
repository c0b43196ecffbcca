"""REST with JSON: the operation is the request's method and path; of the input only what stands in the path is read."""

from __future__ import annotations

import re
from email.message import Message
from typing import Any
from urllib.parse import unquote, urlsplit

from testbed.aws.replies import ApiError, Reply
from testbed.aws.wire import JsonWire

PROTOCOL = "rest-json"


class RestWire:
    """One request of a service.

    Args:
        model: The service's model.
        verb: The request's method.
        path: Its path.
    """

    def __init__(self, model: Any, verb: str, path: str) -> None:
        self._model, self._verb, self._path = model, verb, urlsplit(path).path
        self._json = JsonWire(model)

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""
        del headers, body
        for name in self._model.operation_names:
            http = self._model.operation_model(name).http
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(http["requestUri"]))
            found = re.fullmatch(pattern, self._path)
            if http["method"] == self._verb and found:
                members = self._members(name)
                return name, {members.get(key, key): unquote(value) for key, value in found.groupdict().items()}
        raise ApiError("UnknownOperationException", f"no operation: {self._verb} {self._path}")

    def _members(self, name: str) -> dict[str, str]:
        """The members of an operation's input by what they are called in its path."""
        shape = self._model.operation_model(name).input_shape
        members = shape.members.items() if shape is not None else ()
        return {
            member.serialization["name"]: key
            for key, member in members
            if member.serialization.get("location") == "uri"
        }

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        return self._json.write(operation, answer, request_id)

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""
        told = self._json.fail(error, request_id)
        return Reply(told.status, told.body, {**told.headers, "x-amzn-ErrorType": error.code})
