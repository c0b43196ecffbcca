"""The query protocol: a form with the operation in it, answers in XML; both as the shapes of the model say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

from testbed.aws.form_wire import FormWire, xml_reply
from testbed.aws.replies import ApiError, Reply

_NUMBERS = {"integer": int, "long": int, "float": float, "double": float}


class QueryWire(FormWire):
    """One service in this protocol. Lists are ``Name.member.1``, as services that do not flatten them have it."""

    def given(self, tree: dict[str, Any], shape: Any) -> Any:
        """What a form says, as the input's shape has it."""
        return _given(tree, shape)

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        root = self.root(operation)
        shape = operation.output_shape
        _fill(ET.SubElement(root, shape.serialization["resultWrapper"]), answer, shape)
        about = ET.SubElement(root, "ResponseMetadata")
        ET.SubElement(about, "RequestId").text = request_id
        return xml_reply(200, root)

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""
        root = ET.Element("ErrorResponse", xmlns=self._namespace)
        about = ET.SubElement(root, "Error")
        ET.SubElement(about, "Type").text = "Sender" if error.status < 500 else "Receiver"
        ET.SubElement(about, "Code").text = error.code
        ET.SubElement(about, "Message").text = error.message
        ET.SubElement(root, "RequestId").text = request_id
        return xml_reply(error.status, root)


def _given(value: Any, shape: Any) -> Any:
    """What the form says, in Python's types; what is of no type that the shape has stays text, and is refused by its check."""
    kind = getattr(shape, "type_name", None)
    if kind == "structure" and isinstance(value, dict):
        return {name: _given(one, shape.members.get(name)) for name, one in value.items()}
    if kind == "list" and isinstance(value, dict):
        items = value.get("member", {})
        return [_given(items[number], shape.member) for number in sorted(items, key=int)]
    try:
        if kind in _NUMBERS:
            return _NUMBERS[kind](value)
        if kind == "timestamp":
            return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return value
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value


def _fill(element: ET.Element, value: Any, shape: Any) -> None:
    if shape.type_name == "structure":
        for name, one in value.items():
            _fill(ET.SubElement(element, name), one, shape.members[name])
    elif shape.type_name == "list":
        for one in value:
            _fill(ET.SubElement(element, "member"), one, shape.member)
    else:
        element.text = "".join(_text(value))


def _text(value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, datetime):
        yield value.isoformat()
    else:
        yield str(value)
