"""STS' one operation that we use: who am I."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service


def get_caller_identity(request: Request) -> dict[str, Any]:
    return {
        "UserId": request.caller.user_id,
        "Account": request.account.account_id,
        "Arn": request.caller.arn,
    }


SERVICE = Service("sts", {"GetCallerIdentity": get_caller_identity}, lambda _: Resource(None, "*"))
