"""CloudFormation's answer: put to the address that the request names, in its form, whatever has happened.

The form is that of CloudFormation's documentation (custom resource response objects): at most 4,096 bytes, and ids as the request has them. The address is
signed, so it stands in no log and no error.
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
"""What the body may have."""

_MAX_REASON_LENGTH = 1500
_MAX_TRIES = 6
_FIRST_PAUSE_S, _TIMEOUT = 0.2, 10.0
"""Seconds before the second try, twice as long before each next one; and the longest that one may take."""

_IDS = ("StackId", "RequestId", "LogicalResourceId")


class StackResponse:
    """The one answer to a request.

    Args:
        event: The request.
        limit: The time that there is.

    Raises:
        InvalidInputError: The request does not say where the answer is to go.
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
        """What the resource is called; never empty once it is answered."""

        self.progress = "nothing was started"
        """How far it is, for when time is up."""

    @contextmanager
    def watchdog(self) -> Iterator[None]:
        """Answer near the time limit, whatever the work inside does."""
        timer = threading.Timer(self._limit.watchdog_seconds(), self._on_timeout)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def send(self, status: Status, reason: str, data: Mapping[str, str] | None = None) -> None:
        """Give the answer, unless it was given.

        Args:
            status: Whether it is as wanted.
            reason: What there is to say.
            data: What templates may read by ``Fn::GetAtt``.

        Raises:
            UnreachableError: CloudFormation does not take it.
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
        """The answer in its form, its longest parts cut."""
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
        """Put it, again where that may help.

        Raises:
            UnreachableError: It cannot be put.
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
        """What was wrong, or nothing; and whether it will stay so."""
        # The address is signed for no content type, and urllib would add one.
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
            # Its words may hold the address.
            return type(getattr(error, "reason", error)).__name__, isinstance(error, ValueError)
        return "", False


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
