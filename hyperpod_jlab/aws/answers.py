"""AWS' answers as they came, where botocore takes too little or too much for one.

It drops what it does not know, and SageMaker's images have a boto3 that is a year older than the service: so much of a cluster would
be missing (that Slurm schedules there, the nodes' names, which updates are due). And it takes the page of a network that wants a
login first for an answer without anything in it: an account without clusters.
"""

from __future__ import annotations

import json
from typing import Any

_JSON = "application/x-amz-json"


def check_kind(http_response: Any, model: Any, **_: Any) -> None:
    """Refuse what no AWS service answers: botocore's event ``after-call``.

    Args:
        http_response: The answer as it came.
        model: The operation in botocore's model.

    Raises:
        ResponseParserError: It is good by its status, but of another kind than the service's protocol has.
    """
    kind = _kind(http_response)
    service = model.service_model
    # Of a service with several protocols a newer botocore chooses one; an older one knows only the first.
    spoken = getattr(service, "resolved_protocol", service.metadata.get("protocol"))
    if spoken == "json" and http_response.status_code == 200 and not kind.startswith(_JSON):
        from botocore.parsers import ResponseParserError

        raise ResponseParserError(
            f"something else than AWS answers, with {kind or 'no content type'}"
        )


def keep_newer(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Put back what was dropped: botocore's event ``after-call``. Values come as they are in JSON, so a time is a number.

    Args:
        http_response: The answer as it came.
        parsed: The answer as botocore knows it; it is changed.
    """
    if http_response.status_code == 200 and _kind(http_response).startswith(_JSON):
        _join(parsed, json.loads(http_response.content))


def _kind(http_response: Any) -> str:
    return str(http_response.headers.get("Content-Type", ""))


def _join(known: Any, told: Any) -> None:
    if isinstance(known, dict) and isinstance(told, dict):
        for name, value in told.items():
            if name in known:
                _join(known[name], value)
            elif value is not None:
                known[name] = value
    elif isinstance(known, list) and isinstance(told, list) and len(known) == len(told):
        for one, other in zip(known, told, strict=True):
            _join(one, other)
