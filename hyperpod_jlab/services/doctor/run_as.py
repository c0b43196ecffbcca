"""The step on who a terminal on a node is: root, or the user that Session Manager runs it as."""

from __future__ import annotations

import re

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.session_manager import (
    RUN_AS,
    SessionPreferences,
    run_as_of,
    session_preferences,
)
from hyperpod_jlab.model.check import Step, Told, ok, unknown, warn
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.doctor.at_aws import AtAws
from hyperpod_jlab.services.doctor.opened import CONFIGURATION
from hyperpod_jlab.services.doctor.studio import HYPERPOD, ROLE

_ROLE = re.compile(r"arn:[^:]+:sts::\d+:assumed-role/([^/]+)/.*")

_UNSEEN = "an identity provider may pass it with the session, which is not seen here"


def run_as_steps(at_aws: AtAws) -> list[Step]:
    """As whom terminals run, where there are clusters that count."""

    async def look() -> Told | None:
        if not at_aws.concerned or not await at_aws.our_clusters():
            return None
        return await _run_as(at_aws)

    needs = (CONFIGURATION, ROLE, HYPERPOD)
    return [Step("run-as", "terminals on nodes", "role", look, needs=needs)]


async def _run_as(at_aws: AtAws) -> Told:
    region = await at_aws.aws.region()
    preferences = await session_preferences(at_aws.aws)
    found = _ROLE.fullmatch(await at_aws.caller())
    role = found[1] if found else None
    tag = f"aws iam tag-role --role-name {role or 'ROLE'} --tags Key={RUN_AS},Value=USER"
    if not preferences.run_as:
        return warn(
            f"a terminal on a node is root for all who may open one: Run As is off in Session Manager's preferences in {region}",
            f"turn on Run As in the console, Systems Manager > Session Manager > Preferences, and give each role its user: {tag}",
            "admin",
        )
    otherwise = _otherwise(preferences)
    if role is None:
        return unknown(f"only a role's tags are read, and this is none; without a tag {otherwise}")
    try:
        # IAM has no endpoint in most VPCs: nobody should wait for it.
        user = await run_as_of(Aws(region, hasty=True), role)
    except HyperpodError as error:
        words = f"the tags of the role {role} are not known: {error.message}; without {RUN_AS} {otherwise}"
        return unknown(words, error.hint, "admin")
    if user is not None:
        return ok(f"a terminal on a node is {user}'s, by the tag {RUN_AS} of the role {role}")
    words = f"the role {role} has no tag {RUN_AS}, so {otherwise} ({_UNSEEN})"
    return warn(words, tag, "admin")


def _otherwise(preferences: SessionPreferences) -> str:
    """What a session is for a role without a tag."""
    if preferences.default_user is None:
        return "Session Manager opens no terminal"
    return f"a terminal on a node is {preferences.default_user}'s, as for all without it"
