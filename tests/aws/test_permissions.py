"""Least privilege: each feature works under its own policy, and each action that is taken away is named."""

from __future__ import annotations

import json

import pytest

from hyperpod_jlab.aws.permissions import FEATURES, Feature, Permission, choose, policy
from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.model.errors import InvalidInputError
from testbed.aws.example import example_account
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.iam import Policy
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import KEY, REGION
from tests.aws.feature_runs import RUNS

REFUSALS = ("does not let you", "not authorized", "missing_right")

LOST = [
    pytest.param(feature, one.action, id=f"{feature.name}-{one.action}")
    for feature in FEATURES
    for one in feature.permissions
    if not one.optional
]
BY_NAME = [pytest.param(feature, id=feature.name) for feature in FEATURES]


@pytest.fixture
def account(endpoint, no_aws, tmp_path):
    """An account with clusters, seen from a space of Studio with no right at all."""
    endpoint.account = example_account(REGION)
    add_telemetry(endpoint.account, REGION, hours=1)
    studio = SimulatedStudio(tmp_path, REGION)
    studio.write(endpoint.account)
    for name, value in studio.environment.items():
        no_aws.setenv(name, value)
    return endpoint


def grant(endpoint, *policies):
    endpoint.account.add_caller(KEY, "Narrow", *policies)
    endpoint.calls.clear()


def run(hpj, feature):
    """All that the feature's commands print."""
    words = []
    for line in RUNS[feature.name]:
        forget_session()  # a command is a process of its own
        done = hpj(*line)
        words.append(done.out + done.err)
    return "\n".join(words)


def without(document, action):
    """The policy without one action; a statement that grants nothing any more goes with it."""
    statements = [
        {**one, "Action": [name for name in one["Action"] if name != action]}
        for one in document["Statement"]
    ]
    return {**document, "Statement": [one for one in statements if one["Action"]]}


def test_every_feature_is_run():
    assert set(RUNS) == {feature.name for feature in FEATURES}


@pytest.mark.parametrize("feature", BY_NAME)
def test_a_feature_under_exactly_its_policy(account, hpj, feature):
    # Several features share a command; what the others would ask for is denied to see that it is not missed here.
    others = {one.action for other in FEATURES for one in other.permissions}
    own = {one.action for one in feature.permissions}
    grant(account, policy([feature], region=REGION, account=account.account.account_id))
    words = run(hpj, feature)
    asked = {call.action for call in account.calls} - {"sts:GetCallerIdentity"}
    assert own <= asked, "an action that is granted and not needed"
    refused = {action for action in others if f"let you {action}" in words}
    assert refused == asked - own
    assert not any(action in words for action in own)


def test_all_features_under_the_policy_of_all(account, hpj):
    grant(account, policy(FEATURES, region=REGION, account=account.account.account_id))
    words = "".join(run(hpj, feature) for feature in FEATURES)
    assert not any(refusal in words for refusal in REFUSALS)
    assert {call.action for call in account.calls} - {"sts:GetCallerIdentity"} == {
        one.action for feature in FEATURES for one in feature.permissions
    }


@pytest.mark.parametrize(("feature", "action"), LOST)
def test_each_action_that_is_taken_away_is_named(account, hpj, feature, action):
    grant(account, without(policy(FEATURES), action))
    assert f"let you {action}" in run(hpj, feature)
    grant(account, policy(FEATURES))
    assert f"let you {action}" not in run(hpj, feature)


def test_a_policy_for_another_partition_grants_nothing_here(account, hpj):
    grant(account, policy(choose(["nodes"]), partition="aws-cn"))
    assert "let you sagemaker:ListClusterNodes" in run(hpj, choose(["nodes"])[0])


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_the_policy_is_one_that_iam_takes(partition):
    document = policy(FEATURES, partition=partition)
    Policy(document)
    assert len(json.dumps(document, separators=(",", ":"))) <= 6144  # the most of a managed policy
    for one in document["Statement"]:
        assert one["Resource"] == "*" or one["Resource"].startswith(f"arn:{partition}:")
        assert not any("*" in action for action in one["Action"])


def test_what_changes_something_is_granted_on_purpose_only():
    read = Feature("read", "", (), (Permission("a:Read", "*", ""),))
    act = Feature("act", "", (), (Permission("a:Act", "*", ""),), changes=True)
    assert choose([], (read, act)) == [read]
    assert choose(["act"], (read, act)) == [act]
    with pytest.raises(InvalidInputError, match="no feature 'atc'"):
        choose(["atc"], (read, act))


def test_hpj_admin_policy(hpj, no_aws):
    text = hpj("admin", "policy").ok().out
    assert json.loads(text) == policy(choose([]))
    assert text.count("\n") > 5
    narrow = hpj(
        *("admin", "policy", "nodes", "--region", REGION, "--account", "111122223333"),
        *("--partition", "aws-us-gov", "--json"),
    ).ok()
    (statement,) = narrow.json["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Action": ["sagemaker:DescribeCluster", "sagemaker:ListClusterNodes"],
        "Resource": f"arn:aws-us-gov:sagemaker:{REGION}:111122223333:cluster/*",
    }


def test_in_studio_its_partition_is_the_default(hpj, no_aws, tmp_path):
    metadata = tmp_path / "metadata.json"
    metadata.write_text(
        '{"DomainId": "d", "ResourceArn": "arn:aws-cn:sagemaker:cn-north-1:111122223333:app/d"}'
    )
    no_aws.setenv("RESOURCE_METADATA_FILE", str(metadata))
    assert '"arn:aws-cn:sagemaker:*:*:space/*"' in hpj("admin", "policy", "space").ok().out


def test_the_table_of_actions(hpj, no_aws):
    lines = hpj("admin", "policy", "--actions").ok().out.splitlines()
    assert lines[0].split() == ["FEATURE", "ACTION", "REASON"]
    assert len(lines) == 1 + sum(len(feature.permissions) for feature in FEATURES)
    rows = hpj("admin", "policy", "space", "--actions", "--json").ok().json["actions"]
    assert [(row["feature"], row["action"]) for row in rows] == [
        ("space", "sagemaker:DescribeSpace")
    ]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("ndoes",), "features"),
        (("--region", "Oregon"), "region"),
        (("--account", "1234"), "account"),
    ],
)
def test_bad_words_are_refused(hpj, no_aws, words, field):
    done = hpj("admin", "policy", *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, field)
