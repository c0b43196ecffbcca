"""STS' operations that we use: who am I, and a session of a role that may do no more than a policy of its own says."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from testbed.aws.iam import EVERYTHING, Policy, PolicyError
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError
from testbed.aws.state import Caller


def get_caller_identity(request: Request) -> dict[str, Any]:
    return {"UserId": request.caller.user_id, "Account": request.account.account_id, "Arn": request.caller.arn}


def assume_role(request: Request) -> dict[str, Any]:
    """A session of a role of `Ground.roles`, which may do everything by itself."""
    account, given = request.account, request.given
    role, name = given["RoleArn"].rpartition("/")[2], given["RoleSessionName"]
    if role not in account.ground.roles:
        words = (
            f"User: {request.caller.arn} is not authorized to perform: sts:AssumeRole on resource: {given['RoleArn']}"
        )
        raise ApiError("AccessDenied", words, 403)
    try:
        session = Policy(json.loads(given["Policy"])) if "Policy" in given else None
    except (PolicyError, ValueError) as error:
        raise ApiError("MalformedPolicyDocument", str(error)) from None
    arn = f"arn:{account.partition}:sts::{account.account_id}:assumed-role/{role}/{name}"
    key = f"ASIATESTBED{len(account.callers):09d}"
    everything = (Policy(EVERYTHING),)
    account.callers[key] = Caller(arn, f"AROAEXAMPLE:{name}", policies=everything, session=session)
    return {
        "Credentials": {
            "AccessKeyId": key,
            "SecretAccessKey": account.callers[key].secret,
            "SessionToken": "of-the-testbed",
            "Expiration": account.timeline.now() + timedelta(hours=1),
        },
        "AssumedRoleUser": {"AssumedRoleId": f"AROAEXAMPLE:{name}", "Arn": arn},
    }


def _resource(request: Request) -> Resource:
    role = request.given.get("RoleArn")
    return Resource(role.rpartition("/")[2], role) if role else Resource(None, "*")


SERVICE = Service("sts", {"GetCallerIdentity": get_caller_identity, "AssumeRole": assume_role}, _resource)
