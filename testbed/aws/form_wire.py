"""What the query protocols have in common: a form with the operation in it, whose names are paths, and answers in XML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET

from testbed.aws.replies import ApiError, Reply

UNKNOWN = {"ec2": "The action {} is not valid", "query": "Could not find operation {}"}
"""Their words for an operation that is none, by the protocol."""


class FormWire(ABC):
    """One service."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._version = model.metadata["apiVersion"]
        self._namespace = model.metadata["xmlNamespace"]

    @abstractmethod
    def given(self, tree: dict[str, Any], shape: Any) -> Any:
        """What a form says, as the input's shape has it.

        Args:
            tree: The form, with a branch for each part of a name.
            shape: The shape.
        """

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""
        del headers
        form = dict(parse_qsl(body.decode(), keep_blank_values=True))
        operation = form.pop("Action", "")
        if form.pop("Version", "") != self._version:
            protocol = self._model.metadata["protocol"]
            status = 404 if protocol == "query" else 400
            raise ApiError("InvalidAction", UNKNOWN[protocol].format(operation), status)
        if operation not in self._model.operation_names:
            return operation, {}
        shape = self._model.operation_model(operation).input_shape
        try:
            return operation, self.given(_tree(form), shape)
        except (AttributeError, TypeError, ValueError) as error:
            raise ApiError("MalformedQueryString", "a name has a wrong place") from error

    def root(self, operation: Any) -> ET.Element:
        """The first element of an answer."""
        return ET.Element(f"{operation.name}Response", xmlns=self._namespace)


def _tree(form: dict[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, text in form.items():
        at = tree
        *above, last = name.split(".")
        for part in above:
            at = at.setdefault(part, {})
        at[last] = text
    return tree


def xml_reply(status: int, root: ET.Element) -> Reply:
    """An answer in XML."""
    return Reply(status, ET.tostring(root, encoding="utf-8"), {"Content-Type": "text/xml"})
