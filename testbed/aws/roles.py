"""IAM's operations that we use: the tags of a role, and what it may do."""

from __future__ import annotations

from typing import Any

from testbed.aws.iam import Asked, decide
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError


def list_role_tags(request: Request) -> dict[str, Any]:
    tags = request.account.role_tags.get(request.given["RoleName"], {})
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()], "IsTruncated": False}


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
            results.append({"EvalActionName": action, "EvalResourceName": arn, "EvalDecision": decision})
    return {"EvaluationResults": results, "IsTruncated": False}


def _resource(request: Request) -> Resource:
    given = request.given
    name = given.get("RoleName") or given["PolicySourceArn"].rpartition("/")[2]
    return Resource(name, request.account.role_arn(name))


SERVICE = Service(
    "iam", {"ListRoleTags": list_role_tags, "SimulatePrincipalPolicy": simulate_principal_policy}, _resource
)
