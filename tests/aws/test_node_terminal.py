"""The command for a terminal on a node, and opening it."""

from __future__ import annotations

import shlex

import boto3
import pytest
from botocore.exceptions import ClientError

from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.shell import Shell


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def target_of(endpoint, number=1):
    cluster = endpoint.account.clusters[REGION][0]
    node = cluster.nodes[number]
    return f"sagemaker-cluster:{cluster.arn[-12:]}_{node.group}-{node.instance_id}"


@pytest.mark.parametrize("node", ["ip-10-0-0-2", "ip-10-0-0-2.us-west-2.compute.internal"])
def test_the_command_is_for_a_shell_as_it_is(example, hpj, node):
    done = hpj("terminal", node, "--hyperpod", "ml-cluster").ok()
    assert shlex.split(done.out) == [
        *("aws", "ssm", "start-session", "--target", target_of(example), "--region", REGION),
    ]
    found = hpj("terminal", node, "--hyperpod", "ml-cluster", "--json").ok().json
    assert found["command"] == shlex.split(done.out)
    assert found["instance"] == example.account.clusters[REGION][0].nodes[1].instance_id
    # No session was begun; Systems Manager takes the target, and knows only those of the cluster.
    assert not [call for call in example.calls if call.action.startswith("ssm:")]
    ssm = boto3.Session().client("ssm", region_name=REGION)
    assert ssm.start_session(Target=found["target"])["SessionId"]
    with pytest.raises(ClientError, match="not connected"):
        ssm.start_session(Target=found["target"].replace("i-", "i-0"))


def test_what_is_not_there(example, hpj):
    done = hpj("terminal", "ip-10-0-0-99", "--hyperpod", "ml-cluster", "--json")
    assert (done.code, done.error["code"]) == (3, "no_such_node")
    done = hpj("terminal", "n", "--hyperpod", "no-such-cluster", "--json")
    assert (done.code, done.error["code"]) == (3, "not_found")


def test_nothing_is_opened_without_a_terminal(example, hpj):
    done = hpj("terminal", "ip-10-0-0-2", "--hyperpod", "ml-cluster", "--open", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert example.calls == []


@pytest.fixture
def shell(home, tmp_path):
    return Shell(home, tmp_path / "bin")


def test_opening_runs_the_command_as_it_is_printed(example, shell):
    shell.install("aws", 'printf "<%s>" "$@"; exit 7')
    shell.install("session-manager-plugin", "exit 0")
    code, screen = shell.run("terminal", "ip-10-0-0-2", "--hyperpod", "ml-cluster", "--open")
    words = ("ssm", "start-session", "--target", target_of(example), "--region", REGION)
    assert (code, screen[screen.index("<") :]) == (7, "".join(f"<{word}>" for word in words))


@pytest.mark.parametrize("there", [(), ("aws",)])
def test_what_is_to_be_installed_is_said(example, shell, there):
    for name in there:
        shell.install(name, "exit 7")
    code, screen = shell.run("terminal", "ip-10-0-0-2", "--hyperpod", "ml-cluster", "--open")
    assert code == 2
    assert "session-manager-working-with-install-plugin" in screen
    assert ("the AWS CLI" in screen) == (not there)
    assert example.calls == []
