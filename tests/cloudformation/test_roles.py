"""Roles and features: what a role may do is what its features call, on resources that are as narrow or narrower, and no more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any, get_args

import pytest
from cfnlint.data import AdditionalSpecs
from cfnlint.helpers import load_resource

from hyperpod_jlab.admin.lambdas.settings import CLUSTER_PERMISSION, EKS_PERMISSION, Function, rights
from hyperpod_jlab.aws.permissions import FEATURES
from hyperpod_jlab.aws.session import forget_session
from scripts.make_templates import BLOCKS, NO_SMALLER, cluster_features, domain_features, reading_features
from testbed.aws.iam import Asked, Policy, decide
from tests.admin.conftest import DOMAIN
from tests.aws.conftest import KEY, REGION, prometheus
from tests.aws.feature_account import space_of
from tests.aws.feature_runs import RUNS
from tests.cloudformation.conftest import BY_JOBS, document, statements_of, wired
from tests.cloudformation.resolving import ACCOUNT, FOLDER, Place, RefusedError, Stack, load, resolve

__all__ = ["prometheus"]

ON_EKS: dict[str, Any] = {"EksClusterName": "research", "Namespaces": "team-a,team-b"}
OPTIONAL = {
    "NodeActionsPolicy": ("AllowNodeActions", {"node-actions"}),
    "TerminalPolicy": ("AllowTerminal", {"terminal", "ssh"}),
    "MlflowAppsPolicy": ("AllowMlflowApps", {"mlflow-app"}),
}


def roles(**parameters: Any) -> Stack:
    return resolve("roles.yaml", parameters.pop("place", None), **parameters)


def policy_of(stack, name):
    return stack.properties(name)["PolicyDocument"]["Statement"]


def granted(statements):
    """Actions with their resources."""
    return {
        (action, resource)
        for one in statements
        if one["Effect"] == "Allow"
        for action in one["Action"]
        for resource in (one["Resource"] if isinstance(one["Resource"], list) else [one["Resource"]])
    }


def needed(names, *, eks=True):
    """Actions of features with what IAM calls their resources."""
    return in_account(
        one
        for feature in FEATURES
        if feature.name in names
        for one in feature.permissions
        if eks or ":eks:" not in one.resource
    )


def in_account(permissions):
    place = {"partition": "aws", "region": REGION, "account": ACCOUNT, "domain": DOMAIN}
    return {(one.action, one.resource.format(**place)) for one in permissions}


def assert_neither_more_nor_less(statements, want):
    have = granted(statements)
    assert {action for action, _ in have} == {action for action, _ in want}
    for action, resource in have:
        # In each place that a feature names: a policy with that resource would allow this one.
        wide = [one for name, one in want if name == action]
        if "*" in wide:
            continue
        for one in wide:
            allowing = Policy(document([{"Effect": "Allow", "Action": action, "Resource": one}]))
            sample = resource.replace("*", "x")
            itself = {"aws:userid": "${aws:userid}"}
            if decide((allowing,), Asked(action, sample, itself)).allowed:
                break
        else:
            pytest.fail(f"{action} on {resource} is wider than {wide}")


def test_the_functions_role():
    called = {one for name in get_args(Function) for one in rights(name)}
    of_jobs = {CLUSTER_PERMISSION, EKS_PERMISSION}
    wiring = statements_of(wired(), "FunctionRole", "wiring")
    assert granted(wiring) == in_account(called - of_jobs)
    jobs = statements_of(wired(**BY_JOBS), "FunctionRole", "kubernetes")
    assert_neither_more_nor_less(jobs, in_account(of_jobs))


@pytest.mark.parametrize(("parameters", "eks"), [({}, False), (ON_EKS, True)])
@pytest.mark.parametrize("domain", ["*", "d-example"])
def test_data_scientists_of_slurm_and_eks(parameters, eks, domain):
    stack = roles(DomainId=domain, **parameters)
    want = needed(reading_features(), eks=eks)
    assert_neither_more_nor_less(policy_of(stack, "ReadingPolicy"), want)
    assert {"StudioPolicy", "ReadingPolicy", "AdminPolicy", "UserRole"} == {
        name for name, one in stack.resources.items() if one["Type"].startswith("AWS::IAM::")
    }


@pytest.mark.parametrize("policy", OPTIONAL)
def test_what_changes_something_only_on_request(policy):
    parameter, features = OPTIONAL[policy]
    stack = roles(**{parameter: "true"})
    assert_neither_more_nor_less(policy_of(stack, policy), needed(features))
    assert set(OPTIONAL) & set(stack.resources) == {policy}
    assert stack.properties(policy)["Roles"] == ["wiring-UserRole"]


@pytest.mark.parametrize(("parameters", "eks"), [({}, False), (ON_EKS, True)])
def test_admins(parameters, eks):
    stack = roles(**parameters)
    want = needed(domain_features(), eks=eks)
    assert_neither_more_nor_less(policy_of(stack, "AdminPolicy"), want)
    assert "AdminClusterPolicy" not in stack.resources
    more = roles(**parameters, AllowClusterChanges="true", ClusterRoleName="HyperPod")
    clusters = policy_of(more, "AdminClusterPolicy")
    assert_neither_more_nor_less(clusters, needed(cluster_features(), eks=eks))
    # Who makes clusters gives their instances this role and no other.
    given = {resource for action, resource in granted(clusters) if action.startswith("iam:")}
    assert given <= {f"arn:aws:iam::{ACCOUNT}:role/HyperPod"}


def test_clusters_need_the_role_of_their_instances():
    with pytest.raises(RefusedError, match="ClusterRoleName"):
        roles(AllowClusterChanges="true")


def test_every_feature_is_somebodys():
    """But those of ``hpj doctor --aws``, whose rights are given for the occasion."""
    of_roles = {name for block in BLOCKS["roles.yaml"] for name in block.features}
    for_the_occasion = {"admin-facts"}
    assert of_roles | for_the_occasion == {feature.name for feature in FEATURES}
    assert not of_roles & for_the_occasion


def test_nobody_makes_himself_an_admin():
    stack = roles(**ON_EKS, **dict.fromkeys([one for one, _ in OPTIONAL.values()], "true"))
    actions = {
        action
        for kind in ("AWS::IAM::ManagedPolicy",)
        for one in stack.of_type(kind).values()
        for action, _ in granted(
            [
                {**statement, "Action": [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]}
                for statement in one["PolicyDocument"]["Statement"]
            ]
        )
    }  # fmt: skip
    # Reading tags makes nobody anything.
    assert {action for action in actions if action.startswith("iam:")} <= {"iam:ListRoleTags"}
    assert not actions & {"eks:CreateAccessEntry", "eks:AssociateAccessPolicy", "sts:AssumeRole"}


def test_every_resource_is_named_only_where_iam_knows_none():
    """By AWS' service authorization reference, which cfn-lint brings along."""
    known = load_resource(AdditionalSpecs, "Policies.json")
    for name in ("roles.yaml", "wire-domain.yaml"):
        for resource in load(name)["Resources"].values():
            reasons = (resource.get("Metadata") or {}).get("hyperpod-jlab", {}).get("AnyResource")
            for action, reason in (reasons or {}).items():
                service, _, operation = action.partition(":")
                resources = known[service]["Actions"][operation.lower()].get("Resources")
                if reason.startswith("IAM defines no resource"):
                    assert not resources, action
                else:
                    assert action in NO_SMALLER or service == "ec2", action


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_policies_are_such_as_iam_takes(partition):
    region = {"aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}.get(partition, REGION)
    stack = roles(place=Place(partition, region), **ON_EKS, AllowNodeActions="true")
    for name, one in stack.of_type("AWS::IAM::ManagedPolicy").items():
        text = json.dumps(one["PolicyDocument"], separators=(",", ":"))
        assert len(text) <= 6144, name
        assert text.count("arn:") == text.count(f"arn:{partition}:")
    inline = statements_of(wired(Place(partition, region), SubnetIds="subnet-1"), "FunctionRole")
    assert len(json.dumps(inline, separators=(",", ":"))) <= 10240


def test_access_to_eks_without_cluster_admin():
    stack = roles(**ON_EKS, AdminPrincipalArns="arn:aws:iam::123456789012:role/Admins")
    access = stack.properties("UserAccess")
    scopes = {one["PolicyArn"].rpartition("/")[2]: one["AccessScope"] for one in access["AccessPolicies"]}
    assert scopes == {
        "AmazonSagemakerHyperpodTrainingPolicy": {"Type": "namespace", "Namespaces": ["team-a", "team-b"]},
        "AmazonSagemakerHyperpodUserClusterPolicy": {"Type": "cluster"},
    }  # fmt: skip
    (policy,) = stack.properties("AdminAccess")["AccessPolicies"]
    assert policy["AccessScope"] == {"Type": "namespace", "Namespaces": ["hyperpod-jlab"]}
    by_group = roles(**ON_EKS, KubernetesGroup="team-a").properties("UserAccess")
    assert by_group["KubernetesGroups"] == ["team-a"]
    assert "AccessPolicies" not in by_group
    assert not roles().of_type("AWS::EKS::AccessEntry")
    for path in FOLDER.glob("*.yaml"):
        assert "ClusterAdmin" not in path.read_text(encoding="utf-8")


def test_a_role_that_is_there_gets_the_policies_and_nothing_else():
    stack = roles(ExistingUserRoleName="Studio", AllowTerminal="true", **ON_EKS)
    assert "UserRole" not in stack.resources
    assert "StudioPolicy" not in stack.resources
    for name in ("ReadingPolicy", "TerminalPolicy"):
        assert stack.properties(name)["Roles"] == ["Studio"]
    assert stack.outputs["UserRoleArn"] == f"arn:aws:iam::{ACCOUNT}:role/Studio"
    assert stack.properties("UserAccess")["PrincipalArn"] == stack.outputs["UserRoleArn"]


def test_the_admins_role_is_for_those_who_are_named():
    assert "AdminRole" not in roles().resources
    stack = roles(AdminPrincipalArns=f"arn:aws:iam::{ACCOUNT}:role/A,arn:aws:iam::{ACCOUNT}:role/B")
    (statement,) = stack.properties("AdminRole")["AssumeRolePolicyDocument"]["Statement"]
    assert len(statement["Principal"]["AWS"]) == 2


def test_a_space_under_the_data_scientists_resolved_policy(endpoint, no_aws, tmp_path, home, prometheus, hpj):
    """Each feature is run as in Studio; all that is refused are EKS clusters other than the one that the stack names."""
    account = space_of(endpoint, no_aws, tmp_path, home, prometheus.url)
    place = Place(account=endpoint.account.account_id)
    chosen = {"AllowNodeActions": "true"}
    stack = roles(place=place, DomainId="d-example", EksClusterName="research", **chosen)
    names = ("ReadingPolicy", "NodeActionsPolicy")
    statements = [one for name in names for one in policy_of(stack, name)]
    endpoint.account.add_caller(KEY, "UserRole", document(statements))
    endpoint.calls.clear()
    for feature in FEATURES:
        if feature.name in reading_features() or feature.name == "node-actions":
            for written in RUNS.get(feature.name, ()):
                forget_session()
                done = hpj(*(word.format(**account.names) for word in written))
                refused = set(re.findall(r"do not have the permission (\S+)", done.out + done.err))
                # The account has three of them.
                others = {"clusters", "prometheus", "metrics"}
                allowed = {"eks:DescribeCluster", "eks:DescribeAddon"}
                assert refused <= (allowed if feature.name in others else set()), written
    assert {call.action for call in endpoint.calls} > {"sagemaker:DescribeCluster"}


def test_an_admin_under_the_admins_resolved_policy(endpoint, no_aws, tmp_path, home, prometheus, hpj):
    """Nothing is refused, above all not the tags of what is made: IAM asks about each resource by itself."""
    account = space_of(endpoint, no_aws, tmp_path, home, prometheus.url)
    stack = roles(place=Place(account=endpoint.account.account_id), DomainId="d-example")
    statements = policy_of(stack, "AdminPolicy")
    endpoint.account.add_caller(KEY, "AdminRole", document(statements))
    endpoint.calls.clear()
    for name in domain_features():
        for written in RUNS.get(name, ()):
            forget_session()
            done = hpj(*(word.format(**account.names) for word in written))
            assert "do not have the permission" not in done.out + done.err, (written, done.err)
    asked = {call.action for call in endpoint.calls}
    assert asked >= {"sagemaker:CreateStudioLifecycleConfig", "sagemaker:AddTags"}


def test_the_templates_are_what_the_table_of_features_says():
    script = FOLDER.parent / "scripts" / "make_templates.py"
    done = subprocess.run((sys.executable, str(script), "--check"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
