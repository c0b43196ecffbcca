"""Who signed a request, for which region and service, and when. The signature itself is computed again only where it stands in the address (`presigned`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message

from testbed.aws.replies import ApiError
from testbed.aws.state import Account, Caller

_SCOPE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=[^,]+, Signature=[0-9a-f]{64}"
)
WINDOW = timedelta(minutes=5)
"""How far the clocks of a client and of AWS may be apart."""

PRESIGNED_WINDOW = timedelta(minutes=15)
"""How long STS takes a request that was signed beforehand, whatever that says of itself."""

_FORMAT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Scope:
    """What a request was signed for, and with which key."""

    key: str
    region: str
    service: str


def scope_of(headers: Message) -> Scope:
    """What a request was signed for.

    Raises:
        ApiError: It was not signed.
    """
    found = _SCOPE.fullmatch(headers.get("Authorization", ""))
    if found is None:
        raise ApiError("MissingAuthenticationToken", "Missing Authentication Token", 403)
    return Scope(found["key"], found["region"], found["service"])


def check(headers: Message, scope: Scope, account: Account, now: datetime, window: timedelta = WINDOW) -> Caller:
    """The owner of the key that a request was signed with.

    Args:
        headers: The request's head.
        scope: What it was signed for.
        account: The account.
        now: What time it is.
        window: How far that may be from when it was signed.

    Raises:
        ApiError: The key is unknown or its session is over, or the two clocks are further apart than that.
    """
    signed_text = headers.get("X-Amz-Date", "")
    signed = datetime.strptime(signed_text, _FORMAT).replace(tzinfo=UTC)
    if abs(now - signed) > window:
        late = signed < now
        edge = now - window if late else now + window
        minutes = round(window.total_seconds() / 60)
        words = "Signature expired" if late else "Signature not yet current"
        relation = "earlier" if late else "later"
        sign = "-" if late else "+"
        raise ApiError(
            "SignatureDoesNotMatch" if scope.service == "sts" else "InvalidSignatureException",
            f"{words}: {signed_text} is {'now' if late else 'still'} {relation} than {edge:{_FORMAT}} ({now:{_FORMAT}} {sign} {minutes} min.)",
            403 if scope.service == "sts" else 400,
        )
    caller = account.callers.get(scope.key)
    if caller is None and scope.service == "sts":
        raise ApiError("InvalidClientTokenId", "The security token included in the request is invalid", 403)
    if caller is None:
        raise ApiError("UnrecognizedClientException", "The security token included in the request is invalid.")
    if caller.expired:
        code = "ExpiredToken" if scope.service == "sts" else "ExpiredTokenException"
        raise ApiError(
            code, "The security token included in the request is expired", 403 if scope.service == "sts" else 400
        )
    return caller
