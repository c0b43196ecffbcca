"""The command for a terminal on a node, and opening it."""

from __future__ import annotations

import shlex

import boto3
import pytest
from botocore.exceptions import ClientError

from hyperpod_jlab.aws.permissions import choose, policy
from testbed.aws.example import example_account
from testbed.aws.iam import Asked, Policy, decide
from tests.aws.conftest import KEY, REGION
from tests.aws.shell import Shell


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def place_of(endpoint, number=1):
    cluster = endpoint.account.clusters[REGION][0]
    node = cluster.nodes[number]
    return f"sagemaker-cluster:{cluster.arn[-12:]}_{node.group}-{node.instance_id}"


@pytest.mark.parametrize("node", ["ip-10-0-0-2", "ip-10-0-0-2.us-west-2.compute.internal"])
def test_the_command_is_for_a_shell_as_it_is(example, hpj, node):
    done = hpj("terminal", node, "--cluster", "ml-cluster").ok()
    assert shlex.split(done.out) == [
        *("aws", "ssm", "start-session", "--target", place_of(example), "--region", REGION)
    ]
    found = hpj("terminal", node, "--cluster", "ml-cluster", "--json").ok().json
    assert found["command"] == shlex.split(done.out)
    assert found["instance"] == example.account.clusters[REGION][0].nodes[1].instance_id
    # No session was begun; Systems Manager takes the target, and knows only those of the cluster.
    assert not [call for call in example.calls if call.action.startswith("ssm:")]
    ssm = boto3.Session().client("ssm", region_name=REGION)
    assert ssm.start_session(Target=found["target"])["SessionId"]
    with pytest.raises(ClientError, match="not connected"):
        ssm.start_session(Target=found["target"].replace("i-", "i-0"))


SHELL = "document/SSM-SessionManagerRunShell"
SSH = "document/AWS-StartSSHSession"


@pytest.mark.parametrize(
    ("feature", "lost", "named"),
    [
        ("terminal", "cluster/*", "ssm:StartSession"),
        ("terminal", SHELL, SHELL),
        ("terminal", "session/", "ssmmessages:OpenDataChannel"),
        ("ssh", "cluster/*", "ssm:StartSession"),
        ("ssh", SSH, SSH),
    ],
)
def test_a_session_needs_each_resource_of_its_policy(example, feature, lost, named):
    granted = policy(choose([feature]), region=REGION, account=example.account.account_id)
    more = {"DocumentName": "AWS-StartSSHSession", "Parameters": {"portNumber": ["22"]}}
    given = {"Target": place_of(example), **(more if feature == "ssh" else {})}
    ssm = boto3.Session().client("ssm", region_name=REGION)
    example.account.add_caller(KEY, "Narrow", granted)
    assert ssm.start_session(**given)["SessionId"]
    kept = [one for one in granted["Statement"] if lost not in one["Resource"]]
    assert len(kept) == len(granted["Statement"]) - 1
    example.account.add_caller(KEY, "Narrow", {**granted, "Statement": kept})
    with pytest.raises(ClientError, match=named):
        ssm.start_session(**given)


def test_the_policy_for_ssh_opens_no_terminal_and_ends_nobody_elses_session(example):
    granted = policy(choose(["ssh"]), region=REGION, account=example.account.account_id)
    example.account.add_caller(KEY, "Narrow", granted)
    ssm = boto3.Session().client("ssm", region_name=REGION)
    with pytest.raises(ClientError, match=SHELL):
        ssm.start_session(Target=place_of(example))
    other = f"arn:aws:ssm:{REGION}:{example.account.account_id}:session/AROAOTHER:Someone-0123"
    context = {"aws:userid": "AROAEXAMPLE:SageMaker"}
    for action in ("ssm:TerminateSession", "ssm:ResumeSession", "ssmmessages:OpenDataChannel"):
        own = other.replace("AROAOTHER:Someone", "AROAEXAMPLE:SageMaker")
        assert decide((Policy(granted),), Asked(action, own, context)).allowed
        assert not decide((Policy(granted),), Asked(action, other, context)).allowed


def test_what_is_not_there(example, hpj):
    done = hpj("terminal", "ip-10-0-0-99", "--cluster", "ml-cluster", "--json")
    assert (done.code, done.error["code"]) == (3, "no_such_node")
    done = hpj("terminal", "n", "--cluster", "no-such-cluster", "--json")
    assert (done.code, done.error["code"]) == (3, "not_found")


def test_nothing_is_opened_without_a_terminal(example, hpj):
    done = hpj("terminal", "ip-10-0-0-2", "--cluster", "ml-cluster", "--open", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert example.calls == []


@pytest.fixture
def shell(home, tmp_path):
    return Shell(home, tmp_path / "bin")


def test_opening_runs_the_command_as_it_is_printed(example, shell):
    shell.install("aws", 'printf "<%s>" "$@"; exit 7')
    shell.install("session-manager-plugin", "exit 0")
    code, screen = shell.run("terminal", "ip-10-0-0-2", "--cluster", "ml-cluster", "--open")
    words = ("ssm", "start-session", "--target", place_of(example), "--region", REGION)
    assert (code, screen[screen.index("<") :]) == (7, "".join(f"<{word}>" for word in words))


@pytest.mark.parametrize("there", [(), ("aws",)])
def test_what_is_to_be_installed_is_said(example, shell, there):
    for name in there:
        shell.install(name, "exit 7")
    code, screen = shell.run("terminal", "ip-10-0-0-2", "--cluster", "ml-cluster", "--open")
    assert code == 2
    assert "session-manager-working-with-install-plugin" in screen
    assert ("the AWS CLI" in screen) == (not there)
    assert example.calls == []
