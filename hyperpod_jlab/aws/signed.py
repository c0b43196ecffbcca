"""Call meter: this process's requests to AWS in the last minute, by service and operation."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_jlab.aws.errors import AwsCall

WINDOW_S: Final = 60.0
"""Length of the counting window, in seconds."""

_EVENT: Final = "before-send"


@dataclass(frozen=True)
class OperationCalls:
    """Requests of one operation.

    Attributes:
        service: The service by boto3's name, such as ``sagemaker``.
        operation: The operation by the API's name, such as ``DescribeCluster``.
        calls: Number of requests.
    """

    service: str
    operation: str
    calls: int


class CallMeter:
    """Counts requests; thread-safe. Each attempt and each page counts, as for AWS."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, str, str]] = deque()
        self._listeners: list[Callable[[], None]] = []
        self.total = 0
        """Requests since the process started."""

    def count(self, client: Any) -> None:
        """Count the requests of a boto3 client from now on."""
        service = str(client.meta.service_model.service_name)

        def sent(event_name: str, **_: Any) -> None:
            # before-send.SERVICE.OPERATION, once per attempt; the service has another name there
            self.record(service, event_name.rsplit(".", 1)[1])

        client.meta.events.register(_EVENT, sent)

    def record(self, service: str, operation: str) -> None:
        """Count one request."""
        with self._lock:
            self._recent.append((time.monotonic(), service, operation))
            self.total += 1
            self._drop_old()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def last_minute(self) -> list[OperationCalls]:
        """The requests of the last minute, the most frequent operation first."""
        with self._lock:
            self._drop_old()
            calls_by_operation = Counter((service, operation) for _, service, operation in self._recent)
        rows = [OperationCalls(*names, calls) for names, calls in calls_by_operation.items()]
        return sorted(rows, key=lambda row: (-row.calls, row.service, row.operation))

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function on each request, in the thread that sends it.

        Returns:
            A function that unsubscribes.
        """
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return end

    def _drop_old(self) -> None:
        limit = time.monotonic() - WINDOW_S
        while self._recent and self._recent[0][0] < limit:
            self._recent.popleft()


METER: Final = CallMeter()
"""The meter of this process."""


# --------------------------------------------------------------------------------------------------
# Requests to AWS URLs that boto3 has no operation for, with the same signature as boto3's
# (Signature Version 4).

_RETRY_STATUSES = frozenset({429, 500, 502, 503, 504})
_CODES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    422: "ValidationException",
    429: "ThrottlingException",
}
"""Meaning of a status if the response names no error."""

_TOKEN = re.compile(r"security token included in the request is (expired|invalid)", re.IGNORECASE)
_SIGNATURE = re.compile(r"signature (expired|not yet current|we calculated)|too skewed", re.IGNORECASE)


def post_form(core: Any, http: Any, call: AwsCall, url: str, form: Mapping[str, str]) -> Any:
    """Post a form, signed with the session's credentials; returns the response's JSON. Retries if AWS is busy.

    Args:
        core: botocore's session.
        http: botocore's HTTP session.
        call: The operation; its service is used for the signature.
        url: The URL.
        form: The form's fields.

    Raises:
        botocore.exceptions.ClientError: AWS returns an error.
        botocore.exceptions.BotoCoreError: There are no credentials, or no response.
    """
    from botocore.compat import urlencode
    from botocore.exceptions import ClientError

    body = urlencode(form)
    for wait in (*_retry_delays(), None):
        METER.record(call.service, call.operation)
        response = http.send(_signed_request(core, call, url, body))
        if response.status_code < 300:
            return _decode(response, call)
        if wait is None or response.status_code not in _RETRY_STATUSES:
            raise ClientError(_parse_error(response), call.operation)
        time.sleep(wait)
    raise AssertionError  # no wait after the last attempt


def _retry_delays() -> list[float]:
    """Seconds between attempts: exponential back-off with jitter, as botocore's."""
    return [random.random() * 2**attempt for attempt in range(3)]  # noqa: S311


def headers_for(core: Any, call: AwsCall, url: str) -> dict[str, str]:
    """The signature headers for opening a URL.

    Raises:
        botocore.exceptions.BotoCoreError: There are no credentials.
    """
    from botocore.awsrequest import AWSRequest

    return dict(_add_signature(core, call, AWSRequest("GET", url)).headers.items())


def _signed_request(core: Any, call: AwsCall, url: str, body: str) -> Any:
    """The request, with a signature that is valid for some minutes."""
    from botocore.awsrequest import AWSRequest

    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    request = AWSRequest("POST", url, headers=headers, data=body)
    return _add_signature(core, call, request).prepare()


def _add_signature(core: Any, call: AwsCall, request: Any) -> Any:
    from botocore.auth import SigV4Auth
    from botocore.exceptions import NoCredentialsError

    credentials = core.get_credentials()
    if credentials is None:
        raise NoCredentialsError
    SigV4Auth(credentials.get_frozen_credentials(), call.service, call.region).add_auth(request)
    return request


def _decode(response: Any, call: AwsCall) -> Any:
    from botocore.parsers import ResponseParserError

    try:
        return json.loads(response.content)
    except ValueError:
        raise ResponseParserError(f"{call.action}: the answer is not valid JSON") from None


def _parse_error(response: Any) -> dict[str, Any]:
    """The error of a response, in the form of botocore's own errors."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        body = json.loads(response.content)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    # AWS uses ``message``, Prometheus ``error``.
    message = str(body.get("message") or body.get("Message") or body.get("error") or "")
    error_type = headers.get("x-amzn-errortype", "").partition(":")[0]
    code = error_type or _code_from_message(message) or _CODES.get(response.status_code, str(response.status_code))
    return {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": response.status_code, "HTTPHeaders": headers},
    }


def _code_from_message(message: str) -> str | None:
    """The error code for a message of AWS, if the only code is 403."""
    token = _TOKEN.search(message)
    if token is not None:
        expired = token[1].lower() == "expired"
        return "ExpiredTokenException" if expired else "UnrecognizedClientException"
    return "InvalidSignatureException" if _SIGNATURE.search(message) else None
