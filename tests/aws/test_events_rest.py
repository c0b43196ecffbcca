"""Events of a HyperPod cluster over REST: a real server, real boto3, the testbed's AWS."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from hyperpod_jlab.core import cache as looks
from testbed.aws.events import event_id
from testbed.aws.example import example_account
from testbed.aws.state import Event
from tests.aws.conftest import REGION
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

LIST, DESCRIBE = "sagemaker:ListClusterEvents", "sagemaker:DescribeCluster"
SHOW = "sagemaker:DescribeClusterEvent"
PATH = "clusters/research-eks/events"


@pytest.fixture
def eks(endpoint):
    """The cluster with continuous provisioning: a group grows, then a node fails, which AWS tells twice."""
    endpoint.account = example_account(REGION)
    cluster = endpoint.account.clusters[REGION][1]
    now = datetime.now(UTC).replace(microsecond=0)
    failed = {"level": "Error", "resource": "Instance", "group": "accelerated"}
    failed["instance"] = cluster.nodes[0].instance_id
    why = {"Instance": {"FailureMessage": "Lifecycle script exited with code 1"}}
    cluster.events = [
        Event(now - timedelta(hours=3), "Scaling up.", resource="InstanceGroup", group="general"),
        Event(now - timedelta(hours=2), "Node is unhealthy.", metadata=why, **failed),
        Event(now - timedelta(hours=2, seconds=-1), "Node is unhealthy.", metadata=why, **failed),
        Event(now - timedelta(hours=1), "Lost orchestration-ready.", level="Warn"),
    ]
    return cluster


def made(endpoint, action):
    """How often an action was asked for."""
    return [call.action for call in endpoint.calls].count(action)


async def until_loaded(api, path=PATH, **query):
    """What is there once all of it is there."""
    deadline = time.monotonic() + 60
    answer = await api.get(path, **query)
    while answer["loading"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
        answer = await api.get(path, **{**query, "refresh": "false"})
    return answer


def words(answer):
    return [one["description"] for one in answer["events"]]


async def test_newest_first_with_what_can_be_chosen(endpoint, eks, api):
    answer = await until_loaded(api)
    assert words(answer) == ["Lost orchestration-ready.", "Node is unhealthy.", "Scaling up."]
    failure = answer["events"][1]
    assert (failure["level"], failure["times"]) == ("error", 2)
    assert (answer["groups"], answer["instances"]) == (["accelerated", "general"], [eks.nodes[0].instance_id])
    assert (answer["problem"], answer["notes"], answer["total"]) == (None, [], 3)
    assert made(endpoint, LIST) == 1


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"level": "warn"}, ["Lost orchestration-ready.", "Node is unhealthy."]),
        ({"level": "error"}, ["Node is unhealthy."]),
        ({"group": "general"}, ["Scaling up."]),
        ({"node": "{id}"}, ["Node is unhealthy."]),
        ({"node": "i-ffff"}, []),
        ({"filter": "ORCHESTRATION"}, ["Lost orchestration-ready."]),
        ({"filter": "{id}"}, ["Node is unhealthy."]),
        ({"sort": "time"}, ["Scaling up.", "Node is unhealthy.", "Lost orchestration-ready."]),
        ({"limit": "1"}, ["Lost orchestration-ready."]),
    ],
)
async def test_only_those_that_are_wanted(eks, api, query, wanted):
    given = {key: value.format(id=eks.nodes[0].instance_id) for key, value in query.items()}
    assert words(await until_loaded(api, **given)) == wanted


async def test_pages_go_on_where_they_ended(eks, api):
    first = await until_loaded(api, limit="2")
    rest = await until_loaded(api, limit="2", cursor=first["next"])
    assert words(first) + words(rest) == words(await until_loaded(api))
    assert rest["next"] is None


async def test_however_many_ask_aws_is_asked_once(endpoint, eks, api):
    endpoint.faults.slow[LIST] = 0.3
    answers = await asyncio.gather(*(api.get(PATH) for _ in range(6)))
    assert made(endpoint, LIST) == 1
    assert all(words(answer) == words(answers[0]) for answer in answers)
    await until_loaded(api, refresh="true")
    assert made(endpoint, LIST) == 2


async def test_the_rows_stay_when_aws_refuses(endpoint, eks, api):
    first = await until_loaded(api)
    endpoint.faults.deny(LIST)
    answer = await until_loaded(api, refresh="true")
    assert answer["events"] == first["events"]
    assert (answer["as_of"], answer["problem"]["code"]) == (first["as_of"], "missing_right")
    endpoint.faults.denied.clear()
    assert (await until_loaded(api, refresh="true"))["problem"] is None


async def test_a_cluster_that_may_not_be_described_has_events(endpoint, eks, api):
    endpoint.faults.deny(DESCRIBE)
    answer = await until_loaded(api)
    assert (len(answer["events"]), answer["notes"]) == (3, [])


async def test_a_cluster_of_which_aws_keeps_none(endpoint, eks, api):
    status, error = await api.request("GET", "clusters/ml-cluster/events")
    assert (status, error["code"]) == (422, "no_events")
    assert made(endpoint, LIST) == 0


async def test_the_details_of_an_event(endpoint, eks, api):
    name = event_id(eks, eks.events[1])
    detail = await api.get(f"{PATH}/{name}")
    assert detail["reason"] == "Lifecycle script exited with code 1"
    assert detail["metadata"] == eks.events[1].metadata
    # From then on the table has the reason, which AWS' list does not tell.
    reasons = [one["reason"] for one in (await until_loaded(api))["events"]]
    assert reasons == [None, "Lifecycle script exited with code 1", None]
    endpoint.faults.deny(SHOW)
    status, error = await api.request("GET", f"{PATH}/{name}")
    assert (status, error["detail"]["right"]) == (403, {"action": SHOW})


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("research-eks/events", {"level": "bad"}, 400, "invalid_input"),
        ("research-eks/events", {"sort": "metadata"}, 400, "invalid_input"),
        ("no-such-cluster/events", {}, 404, "not_found"),
        ("research-eks/events/00000000-0000-0000-0000-000000000000", {}, 404, "not_found"),
    ],
)
async def test_what_is_refused(eks, api, path, query, status, code):
    found, error = await api.request("GET", f"clusters/{path}", query=query)
    assert (found, error["code"]) == (status, code)


async def test_an_action_on_a_node_has_aws_asked_again(endpoint, eks, api, monkeypatch):
    monkeypatch.setattr(looks, "FRESH_S", 600.0)
    await until_loaded(api)
    node = eks.nodes[1].instance_id
    body = {"action": "replace", "nodes": [node]}
    status, _ = await api.request("POST", "clusters/research-eks/nodes/actions", body)
    assert status == 200
    answer = await until_loaded(api)
    assert "being replaced" in " ".join(words(answer))
