"""What AWS tells and the installed boto3 does not know: botocore drops it from its answers, and here it is put back.

SageMaker's images have a boto3 that is a year older than the service. So much of a cluster would be missing with it: that Slurm
schedules there, the nodes' names, which updates are due.
"""

from __future__ import annotations

import json
from typing import Any


def keep_newer(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Put back what was dropped: botocore's event ``after-call``. Values come as they are in JSON, so a time is a number.

    Args:
        http_response: The answer as it came.
        parsed: The answer as botocore knows it; it is changed.
    """
    kind = str(http_response.headers.get("Content-Type", ""))
    if http_response.status_code == 200 and kind.startswith("application/x-amz-json"):
        _join(parsed, json.loads(http_response.content))


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
