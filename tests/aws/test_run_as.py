"""Who a terminal on a node is, as the doctor says it."""

from __future__ import annotations

import pytest

from tests.aws.conftest import REGION
from tests.aws.doctor_space import checks, seen, space

__all__ = ["checks", "space"]

TAG = {"SSMSessionRunAs": "alice"}
OFF = f"everyone who can open a terminal on a node is root there: Run As is off in the Session Manager preferences in {REGION}"


@pytest.fixture
def run_as(endpoint, space, checks):
    """The check for these preferences and tags."""

    def found(preferences, tags):
        account = endpoint.account
        account.session_preferences.clear()
        if preferences is not None:
            account.session_preferences[REGION] = preferences
        account.role_tags["StudioRole"] = tags
        return checks()["run-as"]

    return found


@pytest.mark.parametrize("preferences", [None, {}, {"runAsEnabled": False}])
def test_without_run_as_a_terminal_is_root(run_as, preferences):
    check = run_as(preferences, TAG)
    assert seen(check) == ("warn", OFF)
    assert check["who"] == "admin"
    assert "aws iam tag-role --role-name StudioRole --tags Key=SSMSessionRunAs,Value=USER" in check["fix"]  # fmt: skip


@pytest.mark.parametrize("on", [True, "true"])
def test_the_roles_tag_names_the_user_whatever_the_default_is(run_as, on):
    check = run_as({"runAsEnabled": on, "runAsDefaultUser": "ubuntu"}, TAG)
    said = "terminals on nodes run as alice, set by the tag SSMSessionRunAs of the role StudioRole"
    assert seen(check) == ("ok", said)


@pytest.mark.parametrize(
    ("default", "words"),
    [("ubuntu", "terminals on nodes run as ubuntu, the default"), ("", "Session Manager does not open a terminal")],
)
def test_a_role_without_the_tag(run_as, default, words):
    check = run_as({"runAsEnabled": True, "runAsDefaultUser": default}, {"team": "vision"})
    assert check["level"] == "warn"
    assert f"the role StudioRole has no tag SSMSessionRunAs, so {words}" in check["evidence"]
    assert check["fix"].startswith("aws iam tag-role --role-name StudioRole ")


def test_what_may_not_be_read_is_said_and_is_no_failure(endpoint, run_as):
    on = {"runAsEnabled": True, "runAsDefaultUser": "ubuntu"}
    endpoint.faults.deny("iam:ListRoleTags")
    level, words = seen(run_as(on, TAG))
    assert level == "unknown"
    assert "you do not have the permission iam:ListRoleTags" in words
    assert "without SSMSessionRunAs terminals on nodes run as ubuntu" in words
    endpoint.faults.deny("ssm:GetDocument")
    assert seen(run_as(on, TAG)) == ("unknown", "you do not have the permission ssm:GetDocument")
