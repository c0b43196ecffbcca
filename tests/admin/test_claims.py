"""What an apply leaves on the domain while it is under way: who finds it goes on, and nobody looks for marks everywhere for ever."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.fsx import aws as patience
from hyperpod_jlab.admin.fsx.aws import claim_tag, mount_tag
from hyperpod_jlab.admin.fsx.models import ClaimStep, DesiredState
from testbed.aws.faults import ConnectionCutError
from testbed.aws.state import Profile
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.test_injected_faults import apply, wirer_of

SHARED, PER_USER = DesiredState("shared"), DesiredState("per-user")
CLAIM, MARK = claim_tag(FILE_SYSTEM), mount_tag("profile", FILE_SYSTEM)


async def plan_and_tags(endpoint, wanted, disk):
    """A plan, and how many times tags were asked for."""
    before = len(endpoint.calls)
    _, made = await wirer_of(wanted, disk).plan()
    asked = [one for one in endpoint.calls[before:] if one.action == "sagemaker:ListTags"]
    return made, len(asked)


@pytest.mark.parametrize("claim", ["per-user", "shared /old", "nothing"])
async def test_one_that_was_cut_off_is_taken_over(account, endpoint, disk, claim):
    account.domains[DOMAIN].tags[CLAIM] = claim
    account.profiles[DOMAIN, "bob"].tags[MARK] = "/bob"
    made, everywhere = await plan_and_tags(endpoint, SHARED, disk)
    assert [one.state for one in made.steps if isinstance(one, ClaimStep)] == ["to do"]
    assert await apply(SHARED, disk) == {}
    assert CLAIM not in account.domains[DOMAIN].tags
    assert account.profiles[DOMAIN, "bob"].tags == {}
    made, asked = await plan_and_tags(endpoint, SHARED, disk)
    assert not made.drift
    assert asked == everywhere - len(account.profiles)


async def test_what_fails_for_good_leaves_no_mark_and_no_claim(account, endpoint, disk):
    for number in range(10):
        account.profiles[DOMAIN, f"user{number}"] = Profile()
    endpoint.faults.deny("sagemaker:UpdateUserProfile")
    errors = await apply(PER_USER, disk)
    assert len(errors) == 13
    assert CLAIM not in account.domains[DOMAIN].tags
    assert all(one.tags == {} for one in account.profiles.values())
    _, asked = await plan_and_tags(endpoint, PER_USER, disk)
    assert asked < 13


async def test_marks_that_cannot_be_taken_away_are_looked_for_again(account, endpoint, disk):
    endpoint.faults.deny("sagemaker:UpdateUserProfile", "bob")
    endpoint.faults.deny("sagemaker:DeleteTags")
    await apply(PER_USER, disk)
    assert CLAIM in account.domains[DOMAIN].tags
    assert account.profiles[DOMAIN, "bob"].tags
    endpoint.faults.denied.clear()
    assert await apply(PER_USER, disk) == {}
    assert CLAIM not in account.domains[DOMAIN].tags


async def test_what_may_be_done_yet_keeps_the_claim(account, endpoint, disk, monkeypatch):
    def cut(action, when):
        if action == "sagemaker:UpdateUserProfile":
            raise ConnectionCutError

    monkeypatch.setattr(patience, "MAX_WAIT_S", 1.0)
    endpoint.faults.interrupt = cut
    errors = await apply(PER_USER, disk)
    endpoint.faults.interrupt = None
    assert errors
    assert CLAIM in account.domains[DOMAIN].tags
