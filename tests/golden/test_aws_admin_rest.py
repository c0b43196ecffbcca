"""REST answers of the Admin page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hyperpod_jlab.aws.permissions import choose, policy
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from testbed.aws.state import Account
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, disk
from tests.aws.conftest import KEY, REGION, endpoint, no_aws
from tests.conftest import home
from tests.golden.aws_rest_golden import FrozenRest, rest
from tests.server.admin_calls import BACK, PER_USER, SHARED, aws, here, quick, until
from tests.server.conftest import *  # noqa: F403 - the server under test

__all__ = ["aws", "disk", "endpoint", "home", "no_aws", "quick", "rest"]

VARYING = ("id", "version", "began")
"""A plan's id, and the number of events so far."""


async def test_plan_apply_and_take_back(aws: Endpoint, rest: FrozenRest, disk: Path) -> None:
    async def plan(name: str, body: dict[str, Any], *states: str) -> Any:
        status, answer = await rest.api.request("POST", "admin/plan", body)
        assert status == 200, answer
        await until(rest.api, *(states or ("planned",)))
        # How much was read when it failed, goes by the order of threads.
        varying = (*VARYING, *(("read",) if "failed" in states else ()))
        return await rest.get(name, "admin/work", varying=varying)

    await rest.get("admin-work-none", "admin/work")
    await rest.get("admin-steps-none", "admin/steps")
    await plan("admin-planned-per-user", {**PER_USER, **here(disk)})
    await rest.get("admin-steps-per-user", "admin/steps")
    await rest.get("admin-steps-page", "admin/steps", limit="1", varying=["next"])
    told = await plan("admin-planned", SHARED)
    await rest.get("admin-steps", "admin/steps")
    status, answer = await rest.api.request("POST", "admin/apply", {"plan": told["plan"]["id"]})
    assert status == 200, answer
    await until(rest.api, "applied")
    await rest.get("admin-applied", "admin/work", varying=VARYING)
    await rest.get("admin-steps-applied", "admin/steps")
    where = {"domain": DOMAIN, "file_system": FILE_SYSTEM}
    await rest.get("admin-mode", "admin/mode", **where)
    await rest.post("admin-apply-unknown", "admin/apply", {"plan": "nope"})
    await rest.post("admin-cancel", "admin/cancel", varying=VARYING)
    await rest.post("admin-plan-bad", "admin/plan", {"mode": "all"})
    await plan("admin-planned-back", BACK)
    aws.faults.deny("sagemaker:ListUserProfiles")
    await plan("admin-failed", SHARED, "failed")


async def test_rights_and_choices(aws: Endpoint, rest: FrozenRest) -> None:
    await rest.get("admin-rights", "admin/rights")
    aws.account = example_account(REGION)
    await rest.get("admin-choices", "admin/choices")
    where = {"domain": "d-nope", "file_system": FILE_SYSTEM}
    await rest.get("admin-mode-no-domain", "admin/mode", **where)
    await rest.get("admin-mode-bad", "admin/mode", domain=DOMAIN, file_system="x")


async def test_rights_of_a_user(aws: Endpoint, rest: FrozenRest) -> None:
    granted = policy(choose([]), region=REGION, account=aws.account.account_id)
    aws.account.add_caller(KEY, "User", granted)
    await rest.get("admin-rights-user", "admin/rights")
    await rest.get("admin-choices-user", "admin/choices")


async def test_rights_without_a_domain(aws: Endpoint, rest: FrozenRest) -> None:
    aws.account = Account()
    aws.account.add_caller(KEY)
    await rest.get("admin-rights-no-domain", "admin/rights")
