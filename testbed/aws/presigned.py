"""Requests that are signed in their address, as the tokens of EKS are. Here the signature is computed again: it is what ties a token to its cluster."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from email.message import Message
from urllib.parse import parse_qsl, quote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from testbed.aws.replies import ApiError

SECRET = "of-the-testbed"
"""The secret key of all callers."""

_OURS = "X-Amz-"


@dataclass(frozen=True)
class Presigned:
    """A request as it would have come with its signature in the head.

    Attributes:
        headers: The head.
        body: The form.
    """

    headers: Message
    body: bytes


def opened(headers: Message, path: str) -> Presigned | None:
    """A request that is signed in its address; None for one that is not.

    Raises:
        ApiError: The signature is not that of its owner over this address and these headers.
    """
    parts = urlsplit(path)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    given = {name: value for name, value in pairs if name.startswith(_OURS)}
    if "X-Amz-Signature" not in given:
        return None
    key, day, region, service, *_ = [*given.get("X-Amz-Credential", "").split("/"), "", "", ""]
    signed = given.get("X-Amz-SignedHeaders", "").split(";")
    kept = [pair for pair in pairs if pair[0] != "X-Amz-Signature"]
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in kept)
    request = AWSRequest(
        method="GET",
        url=f"http://{headers.get('Host', '')}{parts.path}?{query}",
        headers={name: headers.get(name, "") for name in signed},
    )
    request.context["timestamp"] = given.get("X-Amz-Date", "")
    signer = SigV4Auth(Credentials(key, SECRET), service, region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    if not hmac.compare_digest(signer.signature(text, request), given["X-Amz-Signature"]):
        raise ApiError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided.",
            403,
        )
    head = Message()
    head["X-Amz-Date"] = given.get("X-Amz-Date", "")
    head["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key}/{day}/{region}/{service}/aws4_request, "
        f"SignedHeaders={';'.join(signed)}, Signature={given['X-Amz-Signature']}"
    )
    form = [pair for pair in pairs if not pair[0].startswith(_OURS)]
    body = "&".join(f"{quote(name)}={quote(value)}" for name, value in form)
    return Presigned(head, body.encode())
