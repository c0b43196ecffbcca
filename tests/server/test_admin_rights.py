"""Who is offered the Admin page, over REST against the testbed's AWS, and what can be chosen there."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.admin.fsx import service as admin_rights
from hyperpod_jlab.aws.permissions import choose, policy
from hyperpod_jlab.aws.session import forget_session
from testbed.aws.state import Account
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, domain_account
from tests.aws.conftest import KEY, REGION, endpoint  # noqa: F401 - a fixture
from tests.server.admin_calls import PER_USER, UPDATE, made, posted, until

LIST = "sagemaker:ListUserProfiles"


@pytest.fixture
def aws(endpoint):  # noqa: F811
    endpoint.account = domain_account()
    forget_session()
    return endpoint


async def test_an_admin_is_told_so_and_aws_is_asked_once(aws, api):
    answers = await asyncio.gather(*(api.get("admin/rights") for _ in range(5)))
    assert answers == [{"offered": True, "domain": DOMAIN, "reason": None}] * 5
    assert (made(aws, LIST), made(aws, UPDATE)) == (1, 1)
    assert all(profile.status == "InService" for profile in aws.account.profiles.values())


async def test_a_user_is_refused_by_one_call(aws, api):
    features = choose([])  # what a user has: all that changes nothing
    granted = policy(features, region=REGION, account=aws.account.account_id)
    for statement in granted["Statement"]:
        assert LIST not in statement["Action"]
        statement["Action"].append("sagemaker:ListDomains")
    aws.account.add_caller(KEY, "User", granted)
    for _ in range(3):
        answer = await api.get("admin/rights")
        assert (answer["offered"], answer["reason"]["code"]) == (False, "missing_right")
        assert LIST in answer["reason"]["message"]
    assert (made(aws, LIST), made(aws, UPDATE)) == (1, 0)


async def test_who_may_look_but_not_change_is_no_admin(aws, api):
    aws.faults.deny(UPDATE)
    answer = await api.get("admin/rights")
    assert (answer["offered"], answer["reason"]["code"]) == (False, "missing_right")
    assert UPDATE in answer["reason"]["message"]


async def test_where_aws_does_not_say_nothing_is_offered_and_it_is_asked_again(aws, api, monkeypatch):
    monkeypatch.setattr(admin_rights, "_SHORT_TTL_S", 0.0)
    account = aws.account
    aws.account = Account()
    aws.account.add_caller(KEY)
    assert (await api.get("admin/rights"))["reason"]["code"] == "no_domain"
    aws.account = account
    assert (await api.get("admin/rights"))["offered"]


async def test_without_an_account_nobody_is_asked(api):
    answer = await api.get("admin/rights")
    assert (answer["offered"], answer["reason"]["code"]) == (False, "no_aws")


async def test_a_user_who_asks_by_hand_gets_what_aws_says(aws, api):
    aws.faults.deny(LIST)
    await posted(api, "admin/plan", PER_USER)
    answer = await until(api, "failed")
    assert answer["problem"]["code"] == "missing_right"
    assert LIST in answer["problem"]["message"]
    assert answer["plan"] is None


async def test_domains_and_file_systems_with_their_clusters(aws, api):
    cluster = aws.account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    dns = f"{FILE_SYSTEM}.fsx.{REGION}.amazonaws.com"
    storage = {"FsxLustreConfig": {"DnsName": dns, "MountName": "x5kjbbmv"}}
    cluster.add_group("workers", "ml.p5.48xlarge", 1, storage=[storage])
    answer = await api.get("admin/choices")
    assert answer["domains"] == [{"id": DOMAIN, "name": "example"}]
    (found,) = answer["file_systems"]
    assert (found["id"], found["state"]) == (FILE_SYSTEM, "AVAILABLE")
    assert found["clusters"] == ["ml-cluster"]
    aws.faults.deny("fsx:DescribeFileSystems")
    answer = await api.get("admin/choices")
    assert [one["id"] for one in answer["file_systems"]] == [FILE_SYSTEM]
    assert "fsx:DescribeFileSystems" in answer["notes"][0]
