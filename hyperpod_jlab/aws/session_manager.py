"""As whom sessions of AWS Systems Manager run on nodes: the account's preferences in a region, and the tag of a role.

The tag comes first, then the preferences' default user; with Run As off a session is root's on HyperPod (AWS: "Turn on Run As support for Linux and macOS managed nodes").
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import NotFoundError

RUN_AS = "SSMSessionRunAs"
"""The tag of a role that names the user."""

_PREFERENCES = "SSM-SessionManagerRunShell"


@dataclass(frozen=True)
class SessionPreferences:
    """The preferences of Session Manager, as far as they say who a session is.

    Attributes:
        run_as: Whether sessions run as a named user.
        default_user: The user where a role has no tag; None: there is none, and then no session starts.
    """

    run_as: bool = False
    default_user: str | None = None


async def session_preferences(aws: Aws) -> SessionPreferences:
    """The preferences of the account in a region; where they were never saved, those that hold then.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    try:
        told = await aws.call("ssm", "GetDocument", Name=_PREFERENCES, DocumentFormat="JSON")
    except NotFoundError:
        return SessionPreferences()
    inputs = json.loads(told["Content"]).get("inputs") or {}
    # Tools write the switch as a word, too.
    on = str(inputs.get("runAsEnabled", "")).lower() == "true"
    return SessionPreferences(on, inputs.get("runAsDefaultUser") or None)


async def run_as_of(aws: Aws, role: str) -> str | None:
    """The user that a role's tag names; None without the tag.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("iam", "ListRoleTags", RoleName=role)
    return next((str(tag["Value"]) for tag in told["Tags"] if tag["Key"] == RUN_AS), None)
