"""The functions' role: its resolved policy is enough for all that they do against AWS, and nothing of it can be left out."""

from __future__ import annotations

import asyncio
import copy
import re

import pytest

from hyperpod_jlab.admin.fsx import apply as applying
from hyperpod_jlab.admin.fsx.folders import LocalFolderProvisioner
from hyperpod_jlab.admin.fsx.models import DesiredState
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.admin.lambdas.custom_resource import WiredTarget
from hyperpod_jlab.admin.lambdas.work import Limit, converge
from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.core.errors import HyperpodError
from testbed.aws.iam import Asked, Policy, decide
from testbed.aws.network import SUBNET, SecurityGroup
from testbed.aws.state import Domain, Profile
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.aws.conftest import KEY, REGION
from tests.cloudformation.conftest import BY_JOBS, document, statements_of, wired
from tests.cloudformation.resolving import ACCOUNT, Place

OURS = {"ec2", "fsx", "sagemaker", "eks"}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """SageMaker is quick here, so it is looked at often."""
    monkeypatch.setattr(applying, "POLL_S", 0.02)


class FiveMinutes:
    """Lambda's context."""

    def get_remaining_time_in_millis(self):
        return 300_000


@pytest.fixture
def run(disk):
    """What the functions do, by their own code: a wiring is made, and taken back. What went wrong, in words."""

    def all_of_it(mode):
        forget_session()
        made = StorageRequest(DOMAIN, DesiredState(mode), file_system=FILE_SYSTEM)
        words = []
        for wiring in (made, WiredTarget(DOMAIN, FILE_SYSTEM).empty_request()):
            try:
                outcome = asyncio.run(converge(wiring, Limit(FiveMinutes()), LocalFolderProvisioner(disk)))
            except HyperpodError as error:
                words.append(str(error))
            else:
                words += [str(one.error) for one in outcome.failed]
        return words

    return all_of_it


def grant(endpoint, account, statements):
    account.account_id = ACCOUNT
    account.add_caller(KEY, "FunctionRole", document(statements))
    endpoint.calls.clear()


def lived_in(account):
    """Something of each kind that is ever changed: lists of their own, so that each update is made in both modes."""
    efs = {"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}
    account.profiles[DOMAIN, "carol"].file_systems = [efs]


@pytest.mark.parametrize("mode", ["shared", "per-user"])
def test_the_role_is_enough_to_apply_and_to_take_back(account, endpoint, run, mode):
    lived_in(account)
    before = copy.deepcopy((account.domains, account.profiles, account.spaces))
    grant(endpoint, account, statements_of(wired(PartitionMode=mode), "FunctionRole"))
    assert run(mode) == []
    assert any(call.action == "sagemaker:UpdateUserProfile" for call in endpoint.calls)
    assert (account.domains, account.profiles, account.spaces) == before


def actions():
    """Each action that the wiring's policy grants."""
    wiring = statements_of(wired(), "FunctionRole", "wiring")
    return sorted({action for one in wiring for action in one["Action"]})


@pytest.mark.parametrize("action", actions())
def test_no_action_of_it_can_be_left_out(account, endpoint, run, action):
    lived_in(account)
    narrow = []
    for one in statements_of(wired(), "FunctionRole", "wiring"):
        left = [name for name in one["Action"] if name != action]
        narrow += [{**one, "Action": left}] if left else []
    grant(endpoint, account, narrow)
    words = "".join(word for mode in ("shared", "per-user") for word in run(mode))
    assert f"have the permission {action}" in words


def test_no_other_domain_can_be_changed(account, endpoint, hpj, disk):
    other = "d-other"
    account.domains[other] = Domain(subnets=[SUBNET])
    account.profiles[other, "mallory"] = Profile()
    account.networks[REGION].add(SecurityGroup("sg-0ccccccccccccccccc", f"security-group-for-inbound-nfs-{other}"))
    grant(endpoint, account, statements_of(wired(), "FunctionRole"))
    words = ("--domain", other, "--file-system", FILE_SYSTEM, "--partition-mode", "shared")
    done = hpj("admin", "apply", *words, "--mounted-at", str(disk), "--yes", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    assert account.profiles[other, "mallory"].file_systems == []


SOMEWHERE = f"{REGION}:{ACCOUNT}"


@pytest.mark.parametrize(
    ("action", "resource", "context", "expected"),
    [
        ("sagemaker:UpdateDomain", f"sagemaker:{SOMEWHERE}:domain/{DOMAIN}", {}, True),
        ("sagemaker:UpdateDomain", f"sagemaker:{SOMEWHERE}:domain/{DOMAIN}x", {}, False),
        ("sagemaker:UpdateDomain", f"sagemaker:eu-west-1:{ACCOUNT}:domain/{DOMAIN}", {}, False),
        ("sagemaker:DeleteDomain", f"sagemaker:{SOMEWHERE}:domain/{DOMAIN}", {}, False),
        ("sagemaker:UpdateUserProfile", f"sagemaker:{SOMEWHERE}:user-profile/d-b/bob", {}, False),
        ("iam:PassRole", f"iam::{ACCOUNT}:role/Admin", {}, False),
        *(
            (action, f"{resource}", {"aws:TagKeys": tags}, expected)
            for action, resource in (
                ("sagemaker:AddTags", f"sagemaker:{SOMEWHERE}:user-profile/{DOMAIN}/bob"),
                ("sagemaker:DeleteTags", f"sagemaker:{SOMEWHERE}:domain/{DOMAIN}"),
                ("ec2:CreateTags", f"ec2:{SOMEWHERE}:network-interface/eni-1"),
            )
            for tags, expected in ((("hyperpod-jlab",), True), (("hyperpod-jlab", "team"), False), (("team",), False))
        ),
        ("sagemaker:AddTags", f"sagemaker:{SOMEWHERE}:domain/{DOMAIN}", {}, False),
        ("sagemaker:AddTags", f"sagemaker:{SOMEWHERE}:cluster/abc", {"aws:TagKeys": ("hyperpod-jlab",)}, False),
    ],
)
def test_what_the_role_may_and_may_not(action, resource, context, expected):
    policy = Policy(document(statements_of(wired(), "FunctionRole")))
    asked = Asked(action, f"arn:aws:{resource}", context)
    assert decide((policy,), asked).allowed is expected


def test_lambda_makes_interfaces_and_the_functions_code_does_not():
    stack = wired(SubnetIds="subnet-1,subnet-2", SecurityGroupIds="sg-1")
    assert stack.properties("WiringFunction")["VpcConfig"]["SubnetIds"] == ["subnet-1", "subnet-2"]
    policy = Policy(document(statements_of(stack, "FunctionRole")))
    code = {"lambda:SourceFunctionArn": f"arn:aws:lambda:{SOMEWHERE}:function:wiring-WiringFunction"}
    for action in ("ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"):
        assert decide((policy,), Asked(action, "*", {})).allowed
        assert decide((policy,), Asked(action, "*", code)).explicit
    # What our own code asks for it may ask for.
    assert decide((policy,), Asked("ec2:DescribeNetworkInterfaces", "*", code)).allowed
    without = Policy(document(statements_of(wired(), "FunctionRole")))
    assert not decide((without,), Asked("ec2:CreateNetworkInterface", "*", {})).allowed


def test_only_where_jobs_make_folders_the_cluster_may_be_asked():
    asked = Asked("eks:DescribeCluster", f"arn:aws:eks:{SOMEWHERE}:cluster/research", {})
    other = Asked("eks:DescribeCluster", f"arn:aws:eks:{SOMEWHERE}:cluster/production", {})
    jobs = Policy(document(statements_of(wired(**BY_JOBS), "FunctionRole")))
    assert decide((jobs,), asked).allowed
    assert not decide((jobs,), other).allowed
    plain = Policy(document(statements_of(wired(), "FunctionRole")))
    assert not decide((plain,), asked).allowed


@pytest.mark.parametrize(
    ("partition", "region"), [("aws", "eu-central-1"), ("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")]
)
def test_in_every_partition(partition, region):
    stack = wired(Place(partition, region), **BY_JOBS, SubnetIds="subnet-1", SecurityGroupIds="sg-1")
    statements = statements_of(stack, "FunctionRole")
    Policy(document(statements))
    for one in statements:
        for resource in one["Resource"] if isinstance(one["Resource"], list) else [one["Resource"]]:
            assert resource == "*" or re.match(rf"arn:{partition}:[a-z0-9]+:{region}:{ACCOUNT}:", resource)
    (entry,) = stack.of_type("AWS::EKS::AccessEntry").values()
    assert entry["AccessPolicies"][0]["PolicyArn"].startswith(f"arn:{partition}:eks::aws:")
