"""IAM: what a role is, whom it trusts, and its tags."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

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


def _resource(request: Request) -> Resource:
    name = request.given["RoleName"]
    return Resource(name, request.account.role_arn(name))


SERVICE = Service("iam", {"GetRole": get_role, "ListRoleTags": list_role_tags}, _resource)
