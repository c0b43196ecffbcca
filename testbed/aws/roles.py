"""IAM's operations that we use: what a role is, whom it trusts, its tags, and what it may do."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from testbed.aws.iam import Asked, decide
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError
from testbed.aws.state import START


def get_role(request: Request) -> dict[str, Any]:
    name = request.given["RoleName"]
    trust = request.account.ground.roles.get(name)
    if trust is None:
        words = f"The role with name {name} cannot be found."
        raise ApiError("NoSuchEntity", words, 404)
    return {
        "Role": {
            "Path": "/",
            "RoleName": name,
            "RoleId": "AROA0123456789ABCDEF",
            "Arn": request.account.role_arn(name),
            "CreateDate": START,
            # As IAM has it: quoted, which botocore takes back.
            "AssumeRolePolicyDocument": quote(json.dumps(trust), safe=""),
        }
    }


def list_role_tags(request: Request) -> dict[str, Any]:
    tags = request.account.role_tags.get(request.given["RoleName"], {})
    return {
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "IsTruncated": False,
    }


def simulate_principal_policy(request: Request) -> dict[str, Any]:
    """Whether the caller's own role may do something: of others nothing is known here."""
    given, caller = request.given, request.caller
    role = given["PolicySourceArn"].rpartition("/")[2]
    if f":assumed-role/{role}/" not in caller.arn:
        raise ApiError("NoSuchEntity", f"The role {role} is not that of the caller.", 404)
    results = []
    for action in given["ActionNames"]:
        for arn in given.get("ResourceArns", ["*"]):
            allowed = decide(caller.policies, Asked(action, arn, {})).allowed
            decision = "allowed" if allowed else "implicitDeny"
            results.append(
                {"EvalActionName": action, "EvalResourceName": arn, "EvalDecision": decision}
            )
    return {"EvaluationResults": results, "IsTruncated": False}


def _resource(request: Request) -> Resource:
    given = request.given
    name = given.get("RoleName") or given["PolicySourceArn"].rpartition("/")[2]
    return Resource(name, request.account.role_arn(name))


SERVICE = Service(
    "iam",
    {
        "GetRole": get_role,
        "ListRoleTags": list_role_tags,
        "SimulatePrincipalPolicy": simulate_principal_policy,
    },
    _resource,
)
