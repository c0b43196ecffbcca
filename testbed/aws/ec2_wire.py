"""EC2's own query protocol: a form with flat lists in it, answers in XML whose elements have names of their own."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from testbed.aws.form_wire import FormWire, xml_reply
from testbed.aws.replies import ApiError, Reply

PROTOCOL = "ec2"


class Ec2Wire(FormWire):
    """One service in this protocol."""

    def given(self, tree: dict[str, Any], shape: Any) -> dict[str, Any]:
        """What a form says, as the input's shape has it."""
        return _structure(tree, shape)

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        root = self.root(operation)
        ET.SubElement(root, "requestId").text = request_id
        if operation.output_shape is None:
            ET.SubElement(root, "return").text = "true"
        else:
            _fill(root, answer, operation.output_shape)
        return xml_reply(200, root)

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""
        root = ET.Element("Response")
        about = ET.SubElement(ET.SubElement(root, "Errors"), "Error")
        ET.SubElement(about, "Code").text = error.code
        ET.SubElement(about, "Message").text = error.message
        ET.SubElement(root, "RequestID").text = request_id
        return xml_reply(error.status, root)


def _structure(tree: dict[str, Any], shape: Any) -> dict[str, Any]:
    """The members by their names; one that the shape has not keeps its own, and is refused by its check."""
    names = {_sent_as(name, member): name for name, member in shape.members.items()}
    return {names.get(sent, sent): _value(one, shape.members.get(names.get(sent, sent))) for sent, one in tree.items()}


def _sent_as(name: str, member: Any) -> str:
    """The name that a member has in the form: ``queryName``, else its name in XML with a capital."""
    sent = member.serialization.get("queryName")
    if sent is not None:
        return str(sent)
    in_xml = str(member.serialization.get("name", name))
    return in_xml[0].upper() + in_xml[1:]


def _value(value: Any, shape: Any) -> Any:
    kind = getattr(shape, "type_name", None)
    if kind == "list" and isinstance(value, dict) and all(key.isdigit() for key in value):
        return [_value(value[number], shape.member) for number in sorted(value, key=int)]
    if kind == "structure" and isinstance(value, dict):
        return _structure(value, shape)
    if kind in {"integer", "long"} and isinstance(value, str) and value.isdigit():
        return int(value)
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value


def _fill(element: ET.Element, value: Any, shape: Any) -> None:
    if shape.type_name == "structure":
        for name, one in value.items():
            member = shape.members[name]
            _fill(ET.SubElement(element, member.serialization.get("name", name)), one, member)
    elif shape.type_name == "list":
        for one in value:
            _fill(ET.SubElement(element, "item"), one, shape.member)
    else:
        element.text = str(value).lower() if isinstance(value, bool) else str(value)
