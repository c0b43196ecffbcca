"""The user of AWS Systems Manager sessions on nodes: the account's preferences in a region, and the role's tag.

The tag takes precedence over the preferences' default user; without Run As a session on HyperPod runs as root (AWS:
"Turn on Run As support for Linux and macOS managed nodes").
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import NotFoundError

RUN_AS = "SSMSessionRunAs"
"""The role's tag that names the user."""

_PREFERENCES = "SSM-SessionManagerRunShell"


@dataclass(frozen=True)
class SessionPreferences:
    """Session Manager's preferences about the user of a session.

    Attributes:
        run_as: Whether sessions run as a named user.
        default_user: The user for a role without a tag; None: no session starts then.
    """

    run_as: bool = False
    default_user: str | None = None


async def session_preferences(aws: Aws) -> SessionPreferences:
    """The preferences of the account in a region; the defaults if none were saved.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    try:
        response = await aws.call("ssm", "GetDocument", Name=_PREFERENCES, DocumentFormat="JSON")
    except NotFoundError:
        return SessionPreferences()
    inputs = json.loads(response["Content"]).get("inputs") or {}
    # Some tools write the switch as a string.
    is_enabled = str(inputs.get("runAsEnabled", "")).lower() == "true"
    return SessionPreferences(is_enabled, inputs.get("runAsDefaultUser") or None)


async def find_run_as(aws: Aws, role: str) -> str | None:
    """The user in a role's tag; None without the tag.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("iam", "ListRoleTags", RoleName=role)
    return next((str(tag["Value"]) for tag in response["Tags"] if tag["Key"] == RUN_AS), None)
