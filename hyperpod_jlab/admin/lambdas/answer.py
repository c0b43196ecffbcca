"""The response to CloudFormation: sent to the URL and in the format of the request, whatever has happened.

The format is from CloudFormation's documentation (custom resource response objects): at most 4,096 bytes, and the request's ids. The URL is
signed, so it must not appear in logs or errors.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from hyperpod_jlab.admin.lambdas.work import Limit
from hyperpod_jlab.core.errors import InvalidInputError, UnreachableError

log = logging.getLogger(__name__)

Status = Literal["SUCCESS", "FAILED"]

MAX_BYTES = 4096
"""Maximum size of the body."""

_MAX_REASON_LENGTH = 1500
_MAX_TRIES = 6
_FIRST_PAUSE_S, _TIMEOUT = 0.2, 10.0
"""Seconds before the first retry, doubling afterwards; and the timeout of one attempt."""

_IDS = ("StackId", "RequestId", "LogicalResourceId")


class StackResponse:
    """The single response to a request.

    Args:
        event: The request.
        limit: The time limit.

    Raises:
        InvalidInputError: The request has no response URL.
    """

    def __init__(self, event: Any, limit: Limit) -> None:
        url = event.get("ResponseURL") if isinstance(event, Mapping) else None
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise InvalidInputError("this is not a CloudFormation request: it has no ResponseURL")
        self._url = url
        self._ids = {name: str(event.get(name) or "") for name in _IDS}
        self._limit = limit
        self._lock = threading.Lock()
        self._given = False
        self.physical_id = str(event.get("PhysicalResourceId") or "")
        """The resource's id; never empty once the response is sent."""

        self.progress = "nothing was started"
        """The current progress, for a response at the time limit."""

    @contextmanager
    def watchdog(self) -> Iterator[None]:
        """Send a response near the time limit, whatever the code inside does."""
        timer = threading.Timer(self._limit.watchdog_seconds(), self._on_timeout)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def send(self, status: Status, reason: str, data: Mapping[str, str] | None = None) -> None:
        """Send the response, unless it was sent.

        Args:
            status: Whether the desired state is reached.
            reason: The reason.
            data: Values that templates can read by ``Fn::GetAtt``.

        Raises:
            UnreachableError: CloudFormation does not accept it.
        """
        with self._lock:
            if self._given:
                return
            self._given = True
        body = self._body(status, reason, data or {})
        log.info("answer: %s, %s: %s", status, self.physical_id, reason)
        self._put(body)

    def _on_timeout(self) -> None:
        try:
            self.send(
                "FAILED",
                f"the function stopped after {self._limit.whole:.0f} s: {self.progress}. Nothing is lost; the next run continues from "
                "there",
            )
        except UnreachableError as error:
            log.error("%s", error)  # noqa: TRY400 - its traceback would say nothing more

    def _body(self, status: Status, reason: str, data: Mapping[str, str]) -> bytes:
        """The formatted response, with its longest parts cut."""
        reason = " ".join(reason.split())
        limit = _MAX_REASON_LENGTH
        while True:
            shortened = {name: _truncate(value, limit) for name, value in data.items()}
            body = json.dumps(
                {
                    "Status": status,
                    "Reason": _truncate(reason, limit),
                    "PhysicalResourceId": _truncate(self.physical_id, 300) or "none",
                    **self._ids,
                    "Data": shortened,
                }
            ).encode()
            if len(body) <= MAX_BYTES or limit < 50:
                return body
            limit = limit * 3 // 4

    def _put(self, body: bytes) -> None:
        """Send it, with retries for transient errors.

        Raises:
            UnreachableError: It could not be sent.
        """
        problem, pause = "", _FIRST_PAUSE_S
        for _ in range(_MAX_TRIES):
            problem, final = self._try_put(body)
            if not problem:
                return
            if final or pause > self._limit.end_seconds():
                break
            log.warning("the answer was not accepted (%s); trying again", problem)
            time.sleep(pause)
            pause *= 2
        raise UnreachableError(
            f"CloudFormation does not accept the answer: {problem}",
            code="answer_not_taken",
            hint="check that the function can reach S3; a VPC without internet access needs the S3 gateway endpoint",
        )

    def _try_put(self, body: bytes) -> tuple[str, bool]:
        """The error, or an empty text; and whether it is permanent."""
        # The URL is signed without a content type, and urllib would add one.
        request = urllib.request.Request(  # noqa: S310 - http or https, see __init__
            self._url, body, {"Content-Type": ""}, method="PUT"
        )
        timeout = max(0.1, min(_TIMEOUT, self._limit.end_seconds()))
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
                response.read()
        except urllib.error.HTTPError as error:
            error.close()
            return f"HTTP {error.code}", 400 <= error.code < 500 and error.code not in {408, 429}
        except (OSError, ValueError) as error:
            # The message may contain the URL.
            return type(getattr(error, "reason", error)).__name__, isinstance(error, ValueError)
        return "", False


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
