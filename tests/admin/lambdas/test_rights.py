"""Least privilege: each function works under exactly the policy that templates give it, and says which right is missing."""

from __future__ import annotations

from typing import get_args

import pytest

from hyperpod_jlab.admin.lambdas.settings import EKS_PERMISSION, Function, actions_on_everything, rights, statements
from testbed.aws.state import Profile, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.lambdas.conftest import properties
from tests.admin.lambdas.test_new_profile import EFS, batch, event
from tests.aws.conftest import KEY, REGION

FUNCTIONS = get_args(Function)


def places(account, domain=DOMAIN):
    return {"partition": account.partition, "region": REGION, "account": account.account_id, "domain": domain}


def grant(account, function, domain=DOMAIN):
    given = statements(function, places(account, domain))
    account.add_caller(KEY, "Wiring", {"Version": "2012-10-17", "Statement": given})


@pytest.fixture
def environment(function):
    function.environment |= {"HPJ_DOMAIN_ID": DOMAIN, "HPJ_FILE_SYSTEM_ID": FILE_SYSTEM, "HPJ_PARTITION_MODE": "shared"}


def test_no_action_is_a_pattern_and_nothing_changes_everything():
    for function in FUNCTIONS:
        assert not [one.action for one in rights(function) if "*" in one.action]
        words = [one.partition(":")[2] for one in actions_on_everything(function)]
        assert all(word.startswith(("Describe", "List")) for word in words)


def test_the_stack_under_exactly_its_policy(account, endpoint, stack, environment):
    account.profiles[DOMAIN, "dora"] = Profile(file_systems=[EFS])
    cluster = account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    dns = f"{FILE_SYSTEM}.fsx.{REGION}.amazonaws.com"
    storage = {"FsxLustreConfig": {"DnsName": dns, "MountName": "x5kjbbmv"}}
    cluster.add_group("workers", "ml.p5.48xlarge", 1, storage=[storage])
    grant(account, "custom_resource")
    endpoint.calls.clear()
    given = properties(FileSystemId="", ClusterName="ml-cluster", Folders="timer")
    assert stack.create(**given)["Status"] == "SUCCESS"
    grant(account, "reconcile")
    assert stack.function.invoke("reconcile", {}).result["failed"] == 0
    grant(account, "custom_resource")
    assert stack.delete()["Status"] == "SUCCESS"
    asked = {call.action for call in endpoint.calls}
    # See test_kubernetes.
    assert asked | {EKS_PERMISSION.action} == {one.action for one in rights("custom_resource")}


def test_new_profiles_under_exactly_their_policy(account, endpoint, stack, environment):
    stack.create(**properties())
    account.profiles[DOMAIN, "dora"] = Profile(file_systems=[EFS])
    grant(account, "new_profile")
    invoked = stack.function.invoke("new_profile", batch(event("dora")))
    assert invoked.result == {"batchItemFailures": []}, invoked.log
    assert account.profiles[DOMAIN, "dora"].file_systems == [EFS, lustre_at(FILE_SYSTEM, "/shared")]


def test_the_policy_of_another_domain_grants_nothing_here(account, stack):
    grant(account, "custom_resource", domain="d-other")
    answer = stack.create(**properties())
    assert answer["Status"] == "FAILED"
    assert "you do not have the permission sagemaker:DescribeDomain" in answer["Reason"]
