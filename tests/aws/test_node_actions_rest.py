"""Actions on nodes over REST."""

from __future__ import annotations

import boto3
import pytest

from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.conftest import home  # noqa: F401 - the server's
from tests.server.conftest import *  # noqa: F403 - the server under test

PATH = "clusters/ml-cluster/nodes/actions"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def sent(endpoint):
    return [call.given["NodeIds"] for call in endpoint.calls if "Batch" in call.action]


async def test_a_preview_does_nothing_and_an_action_has_a_result_for_each(example, api):
    node = example.account.clusters[REGION][0].nodes[1]
    body = {"action": "reboot", "nodes": [node.instance_id, "ip-10-9-9-9"]}
    status, plan = await api.request("POST", f"{PATH}/preview", body)
    assert status == 200
    assert [one["instance"] for one in plan["nodes"]] == [node.instance_id, None]
    assert plan["nodes"][1]["refusal"]["code"] == "no_such_node"
    assert plan["nodes"][0]["jobs"] is None
    assert sent(example) == []
    status, done = await api.request("POST", PATH, body)
    assert status == 200
    first, second = done["results"]
    assert (first["ok"], first["instance"], first["error"]) == (True, node.instance_id, None)
    assert second["error"]["code"] == "no_such_node"
    assert sent(example) == [[node.instance_id]]
    assert node.status == "Pending"


async def test_a_drain_can_be_looked_at_before_its_reason_is_known(example, api):
    body = {"action": "drain", "nodes": ["a"]}
    status, plan = await api.request("POST", "clusters/ml-cluster/nodes/actions/preview", body)
    # It is not the reason that is missing, but the scheduler.
    assert (status, plan["code"]) == (400, "no_configured_cluster")
    status, error = await api.request("POST", PATH, body)
    assert (status, error["code"]) == (400, "no_reason")


async def problems(api, path):
    """The code of what is in the way of each action, or None."""
    status, answer = await api.request("GET", path)
    assert status == 200
    return {one["action"]: one["problem"] and one["problem"]["code"] for one in answer["actions"]}


async def test_what_can_be_done_is_known_before_anybody_is_asked(example, api):
    found = await problems(api, PATH)
    assert found == {
        "reboot": None,
        "replace": None,
        "drain": "no_configured_cluster",
        "resume": "no_configured_cluster",
    }
    assert {call.action for call in example.calls} == {"sagemaker:DescribeCluster"}
    # Who looks again costs nothing.
    await problems(api, PATH)
    assert len(example.calls) == 1
    found = await problems(api, "clusters/local/nodes/actions")
    assert found == {
        "reboot": "no_hyperpod_cluster",
        "replace": "no_hyperpod_cluster",
        "drain": "unsupported",
        "resume": "unsupported",
    }
    status, error = await api.request("GET", "clusters/none/nodes/actions")
    assert (status, error["code"]) == (404, "not_found")


async def test_a_boto3_that_is_too_old_is_named_before_it_is_tried(example, api, monkeypatch):
    made = boto3.Session.client

    def older(session, *given, **named):
        client = made(session, *given, **named)
        model = client.meta.service_model
        # A cached property of the model: this client's alone.
        model.__dict__["operation_names"] = [name for name in model.operation_names if not name.startswith("Batch")]
        return client

    monkeypatch.setattr(boto3.Session, "client", older)
    found = await problems(api, PATH)
    assert (found["reboot"], found["replace"]) == ("boto3_too_old", "boto3_too_old")
    _, answer = await api.request("GET", PATH)
    assert "1.41.1" in answer["actions"][0]["problem"]["message"]


async def test_what_can_be_done_is_known_where_the_cluster_cannot_be_described(example, api):
    example.faults.deny("sagemaker:DescribeCluster")
    assert (await problems(api, PATH))["reboot"] is None


async def test_a_right_that_is_missing_is_named_with_each_node(example, api):
    example.faults.deny("sagemaker:BatchReplaceClusterNodes")
    node = example.account.clusters[REGION][0].nodes[1]
    body = {"action": "replace", "nodes": [node.instance_id]}
    status, done = await api.request("POST", PATH, body)
    assert status == 200
    error = done["results"][0]["error"]
    assert error["code"] == "missing_right"
    assert error["detail"]["right"] == {"action": "sagemaker:BatchReplaceClusterNodes"}


async def test_who_may_only_look_may_not_act(example, api, authorizer):
    authorizer.answer = False
    body = {"action": "reboot", "nodes": ["i-0123456789abcdef0"]}
    for path in (PATH, f"{PATH}/preview", "clusters/local/nodes/actions"):
        status, _ = await api.request("POST", path, body)
        assert status == 403
    assert {action for action, _ in authorizer.asked} == {"execute"}
    assert example.calls == []


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (PATH, {"action": "explode", "nodes": ["a"]}, 400, "invalid_input"),
        (PATH, {"action": "reboot", "nodes": []}, 400, "invalid_input"),
        (PATH, {"action": "reboot", "nodes": ["a"] * 501}, 400, "invalid_input"),
        (PATH, {"action": "reboot", "nodes": ["a"], "reason": "b"}, 400, "invalid_input"),
        (PATH, {"action": "drain", "nodes": ["a"]}, 400, "no_reason"),
        (PATH, {"action": "resume", "nodes": ["a"]}, 400, "no_configured_cluster"),
        ("clusters/none/nodes/actions", {"action": "reboot", "nodes": ["a"]}, 404, "not_found"),
        ("clusters/none/nodes/actions", {"action": "resume", "nodes": ["a"]}, 404, "not_found"),
        ("clusters/local/nodes/actions", {"action": "resume", "nodes": ["a"]}, 422, "unsupported"),
        ("clusters/local/nodes/actions", {"action": "reboot", "nodes": ["a"]}, 400, "no_hyperpod_cluster"),
    ],
)
async def test_what_does_not_fit_says_why(example, api, path, body, status, code):
    found, error = await api.request("POST", path, body)
    assert (found, error["code"]) == (status, code)
    assert sent(example) == []
