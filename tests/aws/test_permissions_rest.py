"""Least privilege of what has no command: the REST API under exactly its policy, and with each action taken away."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from hyperpod_jlab.aws.permissions import FEATURES, policy
from testbed.aws.example import example_account
from tests.aws.conftest import KEY, REGION
from tests.aws.feature_runs import PAGES
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

TOLD = {"page": '"vision"', "admin-page": '"offered": true'}
"""What is answered where nothing is missing: a tag, and that there are rights."""

SHOWN = [feature for feature in FEATURES if feature.name in PAGES]
LOST = [
    pytest.param(feature, one.action, id=f"{feature.name}-{one.action}")
    for feature in SHOWN
    for one in feature.permissions
    if not one.optional
]


@pytest.fixture
def account(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


async def answers(api, feature):
    """All that is answered, once all of it is there."""
    words = []
    deadline = time.monotonic() + 60
    for path in PAGES[feature.name]:
        while True:
            _, answer = await api.request("GET", path)
            if not answer.get("loading"):
                break
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        words.append(json.dumps(answer))
    return "\n".join(words)


def grant(endpoint, *actions):
    """Let the caller do this and nothing else."""
    statements = [
        {**one, "Action": granted}
        for one in policy(SHOWN, region=REGION)["Statement"]
        if (granted := [action for action in one["Action"] if action in actions])
    ]
    endpoint.account.add_caller(KEY, "Narrow", {"Version": "2012-10-17", "Statement": statements})


@pytest.mark.parametrize("feature", SHOWN, ids=lambda feature: feature.name)
async def test_a_feature_under_exactly_its_policy(account, api, feature):
    own = {one.action for one in feature.permissions}
    grant(account, *own)
    words = await answers(api, feature)
    assert {call.action for call in account.calls} == own
    assert "have the permission" not in words
    assert TOLD[feature.name] in words


@pytest.mark.parametrize(("feature", "action"), LOST)
async def test_each_action_that_is_taken_away_is_named(account, api, feature, action):
    grant(account, *({one.action for one in feature.permissions} - {action}))
    assert f"have the permission {action}" in await answers(api, feature)
