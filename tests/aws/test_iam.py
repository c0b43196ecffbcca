"""The testbed's IAM: what a policy allows, and that it never allows by not understanding."""

from __future__ import annotations

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from testbed.aws.iam import EVERYTHING, VERSION, Asked, Policy, PolicyError, decide, denied
from tests.aws.conftest import KEY, REGION

pytestmark = pytest.mark.testbed

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abc"
DESCRIBE = "sagemaker:DescribeCluster"
CONTEXT = {"aws:RequestedRegion": REGION, "aws:PrincipalAccount": "111122223333"}


def statement(effect="Allow", **more):
    words = {"Effect": effect, "Action": DESCRIBE, "Resource": "*", **more}
    return {name: value for name, value in words.items() if value is not None}


def policy(*statements):
    return {"Version": VERSION, "Statement": list(statements)}


def verdict(*statements, action=DESCRIBE, resource=ARN):
    found = decide((Policy(policy(*statements)),), Asked(action, resource, CONTEXT))
    return "deny" if found.explicit else "allow" if found.allowed else "nobody allows"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (DESCRIBE, "allow"),
        ("sagemaker:describecluster", "allow"),
        ("sagemaker:Describe*", "allow"),
        ("sagemaker:*Cluster", "allow"),
        ("sagemaker:DescribeCluste?", "allow"),
        ("*", "allow"),
        (["sagemaker:ListClusters", DESCRIBE], "allow"),
        ("sagemaker:DescribeCluster?", "nobody allows"),
        ("sagemaker:List*", "nobody allows"),
        ("fsx:*", "nobody allows"),
    ],
)
def test_actions(action, expected):
    assert verdict(statement(Action=action)) == expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (ARN, "allow"),
        ("arn:aws:sagemaker:*:*:cluster/*", "allow"),
        ("arn:aws:sagemaker:us-*:111122223333:cluster/a?c", "allow"),
        ("arn:*:sagemaker:*:*:cluster/*", "allow"),
        ("arn:aws:sagemaker:*", None),
        ("arn:aws:sagemaker:*:*:cluster/ABC", "nobody allows"),
        ("arn:aws:sagemaker:eu-*:*:cluster/*", "nobody allows"),
        ("arn:aws-cn:sagemaker:*:*:cluster/*", "nobody allows"),
        ("arn:aws:sagemaker:us*2:111122223333:cluster/abc", "allow"),
        # Within its part of the ARN a star does not go over a colon.
        ("arn:aws:sagemaker:us-*3:x:cluster/abc", "nobody allows"),
    ],
)
def test_resources(resource, expected):
    if expected is None:
        with pytest.raises(PolicyError, match="no ARN"):
            verdict(statement(Resource=resource))
    else:
        assert verdict(statement(Resource=resource)) == expected


def test_an_action_on_nothing_single_is_allowed_by_a_star_only():
    assert verdict(statement(Resource="*"), resource="*") == "allow"
    assert verdict(statement(Resource="arn:aws:sagemaker:*:*:*"), resource="*") == "nobody allows"


def test_an_explicit_deny_wins_wherever_it_stands():
    allow, deny = statement(), statement("Deny", Resource=ARN)
    assert verdict(allow, deny) == verdict(deny, allow) == "deny"
    assert verdict(allow, deny, resource=ARN + "d") == "allow"
    two = (Policy(EVERYTHING), Policy(policy(deny)))
    assert decide(two, Asked(DESCRIBE, ARN, CONTEXT)).explicit


def test_not_action_and_not_resource():
    others = statement(Action=None, NotAction=["sagemaker:Delete*", "iam:*"])
    assert verdict(others) == "allow"
    assert verdict(others, action="sagemaker:DeleteCluster") == "nobody allows"
    elsewhere = statement(Resource=None, NotResource=ARN)
    assert verdict(elsewhere) == "nobody allows"
    assert verdict(elsewhere, resource=ARN + "d") == "allow"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"StringEquals": {"aws:RequestedRegion": REGION}}, "allow"),
        ({"StringEquals": {"aws:RequestedRegion": ["eu-west-1", REGION]}}, "allow"),
        ({"StringEquals": {"aws:RequestedRegion": "us-*"}}, "nobody allows"),
        ({"StringLike": {"aws:RequestedRegion": "us-*"}}, "allow"),
        (
            {"StringLike": {"aws:RequestedRegion": "us-*"}, "StringEquals": {"aws:PrincipalAccount": "999999999999"}},
            "nobody allows",
        ),
    ],
)
def test_conditions(condition, expected):
    assert verdict(statement(Condition=condition)) == expected


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        ({"ForAllValues:StringLike": {"aws:TagKeys": "ours*"}}, {"aws:TagKeys": ("ours", "ours-2")}, True),
        ({"ForAllValues:StringLike": {"aws:TagKeys": "ours*"}}, {"aws:TagKeys": ("ours", "team")}, False),
        # Of no value at all it holds: hence Null beside it.
        ({"ForAllValues:StringLike": {"aws:TagKeys": "ours*"}}, {}, True),
        ({"Null": {"aws:TagKeys": "false"}}, {}, False),
        ({"Null": {"aws:TagKeys": "false"}}, {"aws:TagKeys": ("ours",)}, True),
        ({"Null": {"aws:TagKeys": "true"}}, {}, True),
        ({"ArnLike": {"lambda:SourceFunctionArn": "arn:aws:lambda:*:1:function:*"}}, {"lambda:SourceFunctionArn": "arn:aws:lambda:r:1:function:f"}, True),
        ({"ArnLike": {"lambda:SourceFunctionArn": "arn:aws:lambda:*:1:function:*"}}, {"lambda:SourceFunctionArn": "arn:aws:lambda:r:2:function:f"}, False),
        ({"ArnLike": {"lambda:SourceFunctionArn": "arn:aws:lambda:*:1:function:*"}}, {}, False),
        ({"StringEquals": {"aws:TagKeys": "ours"}}, {}, False),
    ],
)  # fmt: skip
def test_conditions_on_what_a_call_may_lack(condition, context, expected):
    policy = Policy({"Version": VERSION, "Statement": statement(Condition=condition)})
    asked = Asked("sagemaker:DescribeCluster", ARN, context)
    assert decide((policy,), asked).allowed is expected


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, "operator Bool is not known"),
        ({"Condition": {"StringEquals": {"aws:userid": "x"}}}, "key aws:userid is not known"),
        ({"Principal": "*"}, "not known in a statement: Principal"),
        ({"Effect": "allow"}, "Allow or Deny"),
        ({"NotAction": "iam:*"}, "either Action or NotAction"),
        ({"Resource": None}, "either Resource or NotResource"),
        ({"Action": []}, "a text or a list of texts"),
        ({"Action": "DescribeCluster"}, "is no action"),
        ({"Resource": "arn:aws:s3:::b/${aws:username}"}, "variables are not known"),
        ({"Resource": "cluster/abc"}, "is no ARN"),
    ],
)
def test_what_is_not_understood_is_refused(wrong, words):
    with pytest.raises(PolicyError, match=words.replace("*", r"\*")):
        Policy(policy(statement(**wrong)))


@pytest.mark.parametrize("document", [{}, {"Version": "2008-10-17", "Statement": [statement()]}, {"Version": VERSION}])
def test_what_is_no_policy_is_refused(document):
    with pytest.raises(PolicyError):
        Policy(document)


@pytest.mark.parametrize(
    ("protocol", "code", "status"),
    [
        ("json", "AccessDeniedException", 400),
        ("rest-json", "AccessDeniedException", 403),
        ("query", "AccessDenied", 403),
        ("ec2", "UnauthorizedOperation", 403),
    ],
)
def test_each_protocols_own_error_names_action_and_resource(protocol, code, status):
    error = denied(protocol, "arn:aws:sts::1:assumed-role/R/S", Asked(DESCRIBE, ARN, {}))
    assert (error.code, error.status) == (code, status)
    assert f"is not authorized to perform: {DESCRIBE} on resource: {ARN} because no" in error.message


def call(method, **given):
    once = Config(retries={"total_max_attempts": 1})
    client = boto3.Session().client("sagemaker", region_name=REGION, config=once)
    try:
        getattr(client, method)(**given)
    except ClientError as error:
        return error.response["Error"]
    return None


def test_the_endpoint_asks_the_callers_policies(endpoint):
    mine = endpoint.account.add_cluster("mine", REGION)
    other = endpoint.account.add_cluster("other", REGION)
    endpoint.account.add_caller(
        KEY,
        "Narrow",
        policy(statement(Resource=mine.arn), statement(Action="sagemaker:ListClusters")),
        policy(statement("Deny", Action="sagemaker:*", Resource=other.arn)),
    )
    assert call("list_clusters") is None
    assert call("describe_cluster", ClusterName="mine") is None
    refused = call("describe_cluster", ClusterName="other")
    assert refused["Code"] == "AccessDeniedException"
    assert refused["Message"].endswith(
        f"assumed-role/Narrow/SageMaker is not authorized to perform: {DESCRIBE} on resource: "
        f"{other.arn} with an explicit deny in an identity-based policy"
    )
    nodes = call("list_cluster_nodes", ClusterName="mine")
    assert "because no identity-based policy allows the sagemaker:ListClusterNodes" in nodes["Message"]
    # Rights are looked at before it is looked whether there is such a cluster.
    assert call("describe_cluster", ClusterName="nope")["Code"] == "AccessDeniedException"
    assert boto3.client("sts", region_name=REGION).get_caller_identity()["Arn"]
