"""What CloudFormation does with a custom resource: it asks, waits for the answer at an address, and goes on or back.

As its documentation says: an update that answers another name is followed by a delete of the old one; one that fails is followed by an update back; a
creation that fails by a delete.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from testbed.loopback import Handler, Loopback
from tests.admin.lambdas.package import Invoked, Lambda

SIGNATURE = "c0ffee0000000000000000000000000000000000000000000000000000000000"
MEMBERS = {"Status", "Reason", "PhysicalResourceId", "StackId", "RequestId", "LogicalResourceId"}


@dataclass
class Bucket:
    """Where answers are put.

    Attributes:
        fails: HTTP statuses of the next requests; 0 breaks the connection.
        answers: The bodies that were taken.
        wrong: What S3 would not have taken.
    """

    fails: list[int] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    tries: int = 0

    def __enter__(self):
        self._server = Loopback(_handler(self))
        self._server.__enter__()
        return self

    def __exit__(self, *error):
        self._server.__exit__(*error)

    @property
    def url(self) -> str:
        """An address as CloudFormation gives, signed for a PUT without a content type."""
        return f"{self._server.url}/arn%3Aaws%3Acloudformation%3A/wiring?X-Amz-Expires=7200&X-Amz-Signature={SIGNATURE}"


def _handler(bucket: Bucket) -> type[Handler]:
    class Taker(Handler):
        def take(self):
            body = self.body()
            bucket.tries += 1
            status = bucket.fails.pop(0) if bucket.fails else 200
            if status == 0:
                self.close_connection = True
                return
            if status == 200:
                self._take(body)
            self.answer(status)

        def _take(self, body):
            if self.command != "PUT":
                bucket.wrong.append(f"method {self.command}")
            if parse_qs(urlsplit(self.path).query).get("X-Amz-Signature") != [SIGNATURE]:
                bucket.wrong.append(f"signature: {self.path}")
            if self.headers.get("Content-Type"):
                bucket.wrong.append(f"content type {self.headers['Content-Type']}")
            if len(body) > 4096:
                bucket.wrong.append(f"{len(body)} bytes")
            bucket.answers.append(json.loads(body))

    return Taker


@dataclass
class Stack:
    """One resource of a stack.

    Attributes:
        function: Its Lambda.
        bucket: Where it answers.
        before_going_back: Called after an update that failed.
        asked: Requests in their order: type and name.
        invoked: What came of each.
    """

    function: Lambda
    bucket: Bucket
    physical_id: str | None = None
    properties: dict[str, Any] | None = None
    before_going_back: Callable[[], None] = lambda: None
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    invoked: list[Invoked] = field(default_factory=list)

    def create(self, **properties: str) -> dict[str, Any]:
        """Create it; where that fails, delete it. The answer to the first."""
        answer = self._ask("Create", None, properties)
        self.physical_id, self.properties = answer["PhysicalResourceId"], properties
        if answer["Status"] == "FAILED":
            self.delete()
        return answer

    def update(self, **properties: str) -> dict[str, Any]:
        """Update it; then clean up, or go back. The answer to the first."""
        before, name = self.properties, self.physical_id
        answer = self._ask("Update", name, properties, before)
        if answer["Status"] == "FAILED":
            self.before_going_back()
            back = self._ask("Update", name, before, properties)
            assert back["Status"] == "SUCCESS", back
            return answer
        self.physical_id, self.properties = answer["PhysicalResourceId"], properties
        if self.physical_id != name:
            cleaned = self._ask("Delete", name, before)
            assert cleaned["Status"] == "SUCCESS", cleaned
        return answer

    def delete(self) -> dict[str, Any]:
        """Delete it; the answer."""
        answer = self._ask("Delete", self.physical_id, self.properties)
        assert answer["PhysicalResourceId"] == self.physical_id
        return answer

    def _ask(self, kind, name, properties, before=None) -> dict[str, Any]:
        event = {
            "RequestType": kind,
            "RequestId": f"request-{len(self.asked)}",
            "StackId": "arn:aws:cloudformation:us-west-2:123456789012:stack/studio/0",
            "LogicalResourceId": "Wiring",
            "ResourceType": "Custom::HyperPodStudioWiring",
            "ResponseURL": self.bucket.url,
            "ServiceToken": "arn:aws:lambda:us-west-2:123456789012:function:wiring",
            "ResourceProperties": {"ServiceToken": "arn:aws:lambda:...", **properties},
        }
        if name is not None:
            event["PhysicalResourceId"] = name
        if before is not None:
            event["OldResourceProperties"] = {"ServiceToken": "arn:aws:lambda:...", **before}
        self.asked.append((kind, name))
        return self.send(event)

    def send(self, event: dict[str, Any]) -> dict[str, Any]:
        """Invoke the function with a request, and check that there is exactly one answer, in its form."""
        count = len(self.bucket.answers)
        invoked = self.function.invoke("custom_resource", event)
        self.invoked.append(invoked)
        assert len(self.bucket.answers) == count + 1, invoked.log
        answer = self.bucket.answers[-1]
        assert set(answer) >= MEMBERS
        assert answer["Status"] in {"SUCCESS", "FAILED"}
        assert answer["Reason"]
        assert answer["PhysicalResourceId"]
        for member in ("StackId", "RequestId", "LogicalResourceId"):
            assert answer[member] == event.get(member, "")
        assert SIGNATURE not in invoked.log
        assert "of-the-testbed" not in invoked.log
        assert "Traceback" not in answer["Reason"]
        return answer
