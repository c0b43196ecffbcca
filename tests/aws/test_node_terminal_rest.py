"""A terminal on a node over REST: what JupyterLab types into a terminal, and who may have it."""

from __future__ import annotations

import shlex

import pytest

from hyperpod_jlab.core.errors import InternalError
from hyperpod_jlab.features.terminal.service import check_arguments
from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.conftest import home  # noqa: F401 - the server's
from tests.server.conftest import *  # noqa: F403 - the server under test

PATH = "clusters/ml-cluster/nodes/{}/terminal"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with nothing on it; gives a way to install a program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(name):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o700)

    return install


async def test_the_line_is_the_command_and_says_what_is_missing(example, api, programs):
    node = example.account.clusters[REGION][0].nodes[1]
    status, found = await api.request("POST", PATH.format(node.instance_id), {})
    assert status == 200
    assert found["instance"] == node.instance_id
    assert found["target"].endswith(f"_{node.group}-{node.instance_id}")
    assert shlex.split(found["line"]) == found["command"]
    assert found["command"] == [*("aws", "ssm", "start-session", "--target", found["target"], "--region", REGION)]
    assert [one["name"] for one in found["missing"]] == ["aws", "session-manager-plugin"]
    assert all("https://docs.aws.amazon.com/" in one["what"] for one in found["missing"])
    programs("aws")
    _, found = await api.request("POST", PATH.format("ip-10-0-0-2"), {})
    assert [one["name"] for one in found["missing"]] == ["session-manager-plugin"]
    programs("session-manager-plugin")
    _, found = await api.request("POST", PATH.format("ip-10-0-0-2"), {})
    assert found["missing"] == []
    # No session was begun.
    assert not [call for call in example.calls if call.action.startswith("ssm:")]


async def test_who_may_only_look_gets_no_way_to_a_shell(example, api, authorizer):
    authorizer.answer = False
    status, _ = await api.request("POST", PATH.format("ip-10-0-0-2"), {})
    assert status == 403
    assert authorizer.asked == [("execute", "hyperpod")]
    assert example.calls == []


async def test_what_is_not_there_and_what_is_not_allowed(example, api):
    status, error = await api.request("POST", PATH.format("ip-10-9-9-9"), {})
    assert (status, error["code"]) == (404, "no_such_node")
    status, error = await api.request("POST", "clusters/none/nodes/n/terminal", {})
    assert (status, error["code"]) == (404, "not_found")
    example.faults.deny("sagemaker:ListClusterNodes")
    status, error = await api.request("POST", PATH.format("ip-10-0-0-2"), {})
    assert (status, error["code"]) == (403, "missing_right")


@pytest.mark.parametrize(
    "word",
    [
        *("", "a b", "$(id)", "`id`", "a;id", "a|id", "a&", "a>b", "a\nid", "a\rid", "\x03", "a\x1bb"),
        *("*", "~", "a'b", 'a"b', "a\\b", "%1", "=a", "{a,b}", "a#b", "#a", "!1", "i-é", "_a"),
    ],
)
def test_a_word_that_a_shell_or_a_terminal_could_obey_is_refused(word):
    with pytest.raises(InternalError, match="not safe in a shell command"):
        check_arguments(("aws", word))


def test_words_of_aws_are_plain():
    words = ("aws", "--target", "sagemaker-cluster:263d58dcaca2_worker-group-1-i-0bf2f08c698e243cc")
    assert check_arguments(words) == words
    assert shlex.join(words) == " ".join(words)


async def test_a_name_that_aws_should_not_have_reaches_no_shell(example, api):
    def hostile(answer):
        for node in answer["ClusterNodeSummaries"]:
            node["InstanceGroupName"] = "workers; touch /tmp/x #"

    example.faults.later["sagemaker:ListClusterNodes"] = hostile
    status, error = await api.request("POST", PATH.format("ip-10-0-0-2"), {})
    assert (status, error["code"]) == (500, "strange_name")
    assert "touch" in error["message"]
