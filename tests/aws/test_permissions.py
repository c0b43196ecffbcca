"""Least privilege: each feature works under its own policy, and each action that is taken away is named."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import botocore.session
import pytest

import hyperpod_jlab
from hyperpod_jlab.aws.errors import AwsCall
from hyperpod_jlab.aws.permissions import FEATURES, Feature, Permission, choose, policy
from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.core.errors import InvalidInputError
from testbed.aws.iam import Policy
from testbed.aws.mlflow import APP_ACTION
from tests.aws.conftest import KEY, REGION
from tests.aws.feature_account import space_of
from tests.aws.feature_runs import ON_A_TERMINAL, PAGES, RUNS
from tests.aws.shell import Shell

pytestmark = pytest.mark.usefixtures("patient_mlflow")

REFUSALS = ("do not have the permission", "not authorized", "missing_right")

AWS_CLI = Path(__file__).with_name("aws_cli.py")
"""In place of the AWS CLI and its plugin."""

WITH_COMMANDS = [feature for feature in FEATURES if feature.name in RUNS]

LOST = [
    pytest.param(feature, one.action, id=f"{feature.name}-{one.action}")
    for feature in WITH_COMMANDS
    for one in feature.permissions
    if not one.optional
]
BY_NAME = [pytest.param(feature, id=feature.name) for feature in WITH_COMMANDS]


@pytest.fixture
def features(endpoint, no_aws, tmp_path, home, prometheus):
    return space_of(endpoint, no_aws, tmp_path, home, prometheus.url)


@pytest.fixture
def account(features):
    return features.endpoint


@pytest.fixture
def shell(home, tmp_path):
    made = Shell(home, tmp_path / "bin")
    made.install("aws", f'exec "{sys.executable}" "{AWS_CLI}" "$@"')
    made.install("session-manager-plugin", "exit 0")
    return made


NEEDS = {"prices": ["eks"]}
"""Features whose commands reach AWS only with another one."""


def proxy_commands(blocks):
    """What ssh runs by these blocks, for port 22."""
    found = re.findall(r"^ *ProxyCommand (.*)$", blocks, re.MULTILINE)
    return [line.replace("%p", "22") for line in found]


@pytest.fixture
def run(hpj, shell, features):
    """All that a feature's commands print; with an action, up to the command that says that this is refused."""

    def print_all(feature, action=None):
        words: list[str] = []
        for written in RUNS[feature.name]:
            if action is not None and refused("\n".join(words), action):
                break
            line = [word.format(**features.names) for word in written]
            if feature.name in ON_A_TERMINAL:
                words.append(shell.run(*line)[1])
                continue
            forget_session()  # a command is a process of its own
            done = hpj(*line)
            words.append(done.out + done.err)
            if feature.name == "ssh":
                words += [shell.sh(line) for line in proxy_commands(done.out)]
        return "\n".join(words)

    return print_all


def grant(endpoint, *policies):
    endpoint.account.add_caller(KEY, "Narrow", *policies)
    endpoint.calls.clear()


def refused(words, action):
    """Whether it is said that this was refused: by us, or by AWS through its own CLI."""
    return any(f"{before} {action}" in words for before in ("have the permission", "perform:"))


def without(document, action):
    """The policy without one action; a statement that grants nothing left goes with it."""
    statements = [
        {**one, "Action": [name for name in one["Action"] if name != action]} for one in document["Statement"]
    ]
    return {**document, "Statement": [one for one in statements if one["Action"]]}


def test_every_feature_is_run():
    assert sorted([*RUNS, *PAGES]) == sorted(feature.name for feature in FEATURES)


@pytest.mark.parametrize("feature", BY_NAME)
def test_a_feature_under_exactly_its_policy(account, run, feature):
    # Several features share a command; what the others would ask for is denied to see that it is not missed here.
    others = {one.action for other in FEATURES for one in other.permissions}
    needs = NEEDS.get(feature.name)
    features = [feature, *(choose(needs) if needs else [])]  # choose([]) are all that only read
    own = {one.action for each in features for one in each.permissions}
    grant(account, policy(features, region=REGION, account=account.account.account_id))
    words = run(feature)
    asked = {call.action for call in account.calls} - {"sts:GetCallerIdentity"}
    assert own <= asked, "an action that is granted and not needed"
    assert {action for action in others if refused(words, action)} == asked - own
    assert not any(action in words for action in own)


def test_all_features_under_the_policy_of_all(account, run):
    grant(account, policy(FEATURES, region=REGION, account=account.account.account_id))
    words = "".join(run(feature) for feature in WITH_COMMANDS)
    assert not any(refusal in words for refusal in REFUSALS)
    assert {call.action for call in account.calls} - {"sts:GetCallerIdentity"} == {
        one.action for feature in WITH_COMMANDS for one in feature.permissions
    }


@pytest.mark.parametrize(("feature", "action"), LOST)
def test_each_action_that_is_taken_away_is_named(account, run, feature, action):
    grant(account, without(policy(FEATURES), action))
    # That nothing is refused with it, `test_a_feature_under_exactly_its_policy` shows.
    assert refused(run(feature, action), action)


def test_a_policy_for_another_partition_grants_nothing_here(account, run):
    grant(account, policy(choose(["nodes"]), partition="aws-cn"))
    assert "have the permission sagemaker:ListClusterNodes" in run(choose(["nodes"])[0])


def operations_in(session, path):
    """The actions that a module names: words of it that are operations of services which it names too."""
    words = {
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    services = words & set(session.get_available_services())
    return {
        AwsCall(service, word, "").action
        for service in services
        for word in words & set(session.get_service_model(service).operation_names)
    }


def test_every_operation_in_the_code_is_of_a_feature():
    session = botocore.session.Session()
    package = Path(hyperpod_jlab.__file__).parent
    askers = [path for path in package.rglob("*.py") if "aws" in path.read_text(encoding="utf-8")]
    # The rules for cluster configurations have a check called eks, and name SageMaker's CreateCluster.
    named = set().union(*(operations_in(session, path) for path in askers)) - {
        "sts:GetCallerIdentity",
        "eks:CreateCluster",
    }
    # The AWS CLI opens, resumes and ends sessions, not this code; roles are passed by other calls; queries of Prometheus and requests to MLflow are no operations of boto3.
    listed = {
        one.action
        for feature in FEATURES
        for one in feature.permissions
        if not one.action.startswith("sagemaker-mlflow:")
    }
    sessions = {"ssm:StartSession", "ssm:ResumeSession", "ssm:TerminateSession", "ssmmessages:OpenDataChannel"}
    assert named == listed - sessions - {"aps:QueryMetrics", "iam:PassRole", APP_ACTION}


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
    admin = Feature("admin-read", "", (), (Permission("a:Look", "*", ""),))
    assert choose([], (read, act, admin)) == [read]
    assert choose(["admin-read"], (read, act, admin)) == [admin]
    assert choose(["act"], (read, act)) == [act]
    with pytest.raises(InvalidInputError, match="unknown feature 'atc'"):
        choose(["atc"], (read, act))


def actions_of(document):
    return {action for one in document["Statement"] for action in one["Action"]}


def test_hpj_admin_policy(hpj, no_aws):
    done = hpj("admin", "policy").ok()
    text = done.out
    assert json.loads(text) == policy(choose([]))
    # What only admins need, they name.
    assert not {"sagemaker:ListUserProfiles", "iam:PassRole"} & actions_of(json.loads(text))
    assert "because they are for administrators: admin-plan, admin-apply" in done.err
    assert "sagemaker:ListUserProfiles" in actions_of(hpj("admin", "policy", "admin-plan", "--json").ok().json)
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
    metadata.write_text('{"DomainId": "d", "ResourceArn": "arn:aws-cn:sagemaker:cn-north-1:111122223333:app/d"}')
    no_aws.setenv("RESOURCE_METADATA_FILE", str(metadata))
    assert '"arn:aws-cn:sagemaker:*:*:space/*"' in hpj("admin", "policy", "space").ok().out


def test_the_table_of_actions(hpj, no_aws):
    lines = hpj("admin", "policy", "--actions").ok().out.splitlines()
    assert lines[0].split() == ["FEATURE", "ACTION", "REASON"]
    assert len(lines) == 1 + sum(len(feature.permissions) for feature in FEATURES)
    rows = hpj("admin", "policy", "space", "--actions", "--json").ok().json["actions"]
    assert [(row["feature"], row["action"]) for row in rows] == [("space", "sagemaker:DescribeSpace")]


@pytest.mark.parametrize(
    ("words", "field"),
    [(("ndoes",), "features"), (("--region", "Oregon"), "region"), (("--account", "1234"), "account")],
)
def test_bad_words_are_refused(hpj, no_aws, words, field):
    done = hpj("admin", "policy", *words, "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, field)
