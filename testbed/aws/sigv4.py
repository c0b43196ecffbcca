"""Signature Version 4, computed again from the request and the caller's secret, as AWS' documentation of the canonical request has it."""

from __future__ import annotations

import hashlib
import hmac
import re
from email.message import Message
from urllib.parse import parse_qsl, quote, urlsplit

from testbed.aws.replies import ApiError
from testbed.aws.signature import Scope

_PARTS = re.compile(
    r"Credential=[^/]+/(?P<day>\d{8})/[^,]+, SignedHeaders=(?P<signed>[^,]+), Signature=(?P<signature>\w+)"
)
_NEEDED = frozenset({"host", "x-amz-date"})


def check_signature(headers: Message, scope: Scope, secret: str, verb: str, path: str, body: bytes) -> None:
    """Whether a request is what its signature was made of.

    Args:
        headers: The request's headers.
        scope: What it says it was signed for.
        secret: The secret of its key.
        verb: Its method.
        path: Its path with the query.
        body: Its body.

    Raises:
        ApiError: It is not.
    """
    found = _PARTS.search(headers.get("Authorization", ""))
    if found is None:
        raise ApiError("MissingAuthenticationToken", "Missing Authentication Token", 403)
    signed = found["signed"].split(";")
    needed = _NEEDED | ({"x-amz-security-token"} & {name.lower() for name in headers})
    canonical = _canonical(headers, signed, verb, path, body)
    where = f"{found['day']}/{scope.region}/{scope.service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{headers.get('X-Amz-Date', '')}\n{where}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in where.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    wanted = hmac.digest(key, text.encode(), "sha256").hex()
    if not needed <= set(signed) or not hmac.compare_digest(wanted, found["signature"]):
        raise ApiError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.",
            403,
        )


def _canonical(headers: Message, signed: list[str], verb: str, path: str, body: bytes) -> str:
    address = urlsplit(path)
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(address.query, keep_blank_values=True)
    )
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed]
    return "\n".join(
        (
            verb,
            quote(address.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            "".join(lines),
            ";".join(signed),
            hashlib.sha256(body).hexdigest(),
        )
    )
