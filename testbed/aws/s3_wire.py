"""REST with XML, as S3 has it: the bucket is the path, the rest stands in the query; lists in answers are flat."""

from __future__ import annotations

from datetime import datetime
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree as ET

from testbed.aws.replies import ApiError, Reply

PROTOCOL = "rest-xml"


class S3Wire:
    """One request.

    Args:
        model: The service's model.
        verb: The request's method.
        path: Its path with its query.
    """

    def __init__(self, model: Any, verb: str, path: str) -> None:
        self._model, self._verb, self._place = model, verb, urlsplit(path)

    def read(self, headers: Message, body: bytes) -> tuple[str, dict[str, Any]]:
        """The operation's name and the input."""
        del headers, body
        bucket, _, key = unquote(self._place.path).lstrip("/").partition("/")
        query = dict(parse_qsl(self._place.query, keep_blank_values=True))
        if self._verb != "GET" or key or query.pop("list-type", None) != "2":
            raise ApiError("NotImplemented", "testbed/aws lists objects of S3 only", 501)
        shape = self._model.operation_model("ListObjectsV2").input_shape
        names = {one.serialization.get("name"): name for name, one in shape.members.items()}
        given: dict[str, Any] = {names.get(name, name): text for name, text in query.items()}
        if given.get("MaxKeys", "").isdigit():
            given["MaxKeys"] = int(given["MaxKeys"])
        return "ListObjectsV2", {"Bucket": bucket, **given}

    def write(self, operation: Any, answer: dict[str, Any], request_id: str) -> Reply:
        """An answer that has been checked."""
        root = ET.Element("ListBucketResult", xmlns="http://s3.amazonaws.com/doc/2006-03-01/")
        _fill(root, answer, operation.output_shape)
        return _reply(200, root, request_id)

    def fail(self, error: ApiError, request_id: str) -> Reply:
        """An error."""
        root = ET.Element("Error")
        for name, text in (("Code", error.code), ("Message", error.message)):
            ET.SubElement(root, name).text = text
        return _reply(error.status, root, request_id)


def _reply(status: int, root: ET.Element, request_id: str) -> Reply:
    head = {"Content-Type": "application/xml", "x-amz-request-id": request_id}
    return Reply(status, ET.tostring(root, encoding="utf-8"), head)


def _fill(element: ET.Element, value: dict[str, Any], shape: Any) -> None:
    for name, one in value.items():
        member = shape.members[name]
        for single in one if member.type_name == "list" else [one]:
            child = ET.SubElement(element, name)
            if isinstance(single, dict):
                _fill(child, single, member.member)
            elif isinstance(single, datetime):
                child.text = single.isoformat()
            else:
                child.text = str(single).lower() if isinstance(single, bool) else str(single)
