"""``hpj events``: what happened to a HyperPod cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testbed.aws.events import event_id
from testbed.aws.example import example_account
from testbed.aws.state import Event
from tests.aws.conftest import REGION

LIST, SHOW = "sagemaker:ListClusterEvents", "sagemaker:DescribeClusterEvent"
WORDS = ("events", "--cluster", "research-eks")


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def eks(example):
    """The cluster with continuous provisioning, with some events of the last hours."""
    cluster = example.account.clusters[REGION][1]
    now = datetime.now(UTC).replace(microsecond=0)
    node = cluster.nodes[0].instance_id
    failure = {"Instance": {"FailureMessage": "Lifecycle script exited with code 1"}}
    scaling = {"InstanceGroupScaling": {"InstanceCount": 6, "TargetCount": 8}}
    cluster.events = [
        Event(now - timedelta(hours=30), "The cluster was made."),
        Event(now - timedelta(hours=3), "Scaling up.", resource="InstanceGroup", group="accelerated", metadata=scaling),
        *(
            Event(
                now - timedelta(hours=2, seconds=-second),
                "Node is unhealthy.",
                level="Error",
                resource="Instance",
                group="accelerated",
                instance=node,
                metadata=failure,
            )
            for second in (0, 1)
        ),
        Event(now - timedelta(hours=1), "Lost orchestration-ready.", level="Warn"),
    ]
    return cluster


def descriptions(done):
    return [one["description"] for one in done.ok().json["events"]]


def test_newest_first_and_what_is_told_twice_once(eks, hpj):
    found = hpj(*WORDS, "--json").ok().json["events"]
    assert [(one["level"], one["resource"], one["times"]) for one in found] == [
        ("warn", "cluster", 1),
        ("error", "instance", 2),
        ("info", "group", 1),
        ("info", "cluster", 1),
    ]
    assert found[1]["instance"] == eks.nodes[0].instance_id
    lines = hpj(*WORDS).ok().out.splitlines()
    assert lines[2].endswith("Node is unhealthy. (2 times)")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--level", "warn"), ["Lost orchestration-ready.", "Node is unhealthy."]),
        (("--level", "error"), ["Node is unhealthy."]),
        (("--of", "group"), ["Scaling up."]),
        (("--group", "accelerated"), ["Node is unhealthy.", "Scaling up."]),
        (("--since", "90m"), ["Lost orchestration-ready."]),
        (("--limit", "1"), ["Lost orchestration-ready."]),
    ],
)
def test_only_those_that_are_wanted(eks, hpj, words, wanted):
    assert descriptions(hpj(*WORDS, *words, "--json")) == wanted


def test_those_of_one_instance_are_shown(example, eks, hpj):
    node = eks.nodes[0].instance_id
    assert descriptions(hpj(*WORDS, "--node", node, "--json")) == ["Node is unhealthy."]
    (call,) = [call for call in example.calls if call.action == LIST]
    assert "NodeId" not in call.given


def test_all_pages_are_read_and_the_end_of_aws_memory_is_said(example, eks, hpj):
    begin = datetime.now(UTC) - timedelta(hours=20)
    eks.events = [Event(begin + timedelta(minutes=number), f"Event {number}.") for number in range(620)]
    done = hpj(*WORDS, "--json").ok().json
    assert [one["description"] for one in done["events"]] == [f"Event {number}." for number in range(619, 119, -1)]
    assert done["notes"] == ["AWS keeps the newest 500 events of a cluster"]
    assert len([call for call in example.calls if call.action == LIST]) == 5
    first = hpj(*WORDS, "--json", "--limit", "300").ok().json
    rest = hpj(*WORDS, "--json", "--cursor", first["next"]).ok().json
    assert first["events"] + rest["events"] == done["events"]


def test_one_event_says_why(eks, hpj):
    name = event_id(eks, eks.events[2])
    done = hpj(*WORDS, "--event", name, "--json").ok().json
    assert done["reason"] == "Lifecycle script exited with code 1"
    assert "Lifecycle script exited with code 1" in hpj(*WORDS, "--event", name).ok().out
    other = hpj(*WORDS, "--event", event_id(eks, eks.events[1]), "--json").ok().json
    assert other["reason"] is None
    assert other["metadata"]["InstanceGroupScaling"]["TargetCount"] == 8
    missing = hpj(*WORDS, "--event", "00000000-0000-0000-0000-000000000000", "--json")
    assert (missing.code, missing.error["code"]) == (3, "not_found")


def test_a_cluster_without_continuous_provisioning_has_none(example, eks, hpj):
    words = ("events", "--cluster", "ml-cluster", "--json")
    done = hpj(*words)
    assert (done.code, done.error["code"]) == (2, "no_events")
    assert [call for call in example.calls if call.action == LIST] == []
    # Where the cluster may not be described AWS itself says it.
    example.faults.deny("sagemaker:DescribeCluster")
    done = hpj(*words)
    assert done.code == 2
    assert "NodeProvisioningMode" in done.error["message"]
    assert len(descriptions(hpj(*WORDS, "--json"))) == 4


@pytest.mark.parametrize(("action", "more"), [(LIST, ()), (SHOW, ("--event", "0" * 8))])
def test_a_right_that_is_missing_is_named(example, eks, hpj, action, more):
    example.faults.deny(action)
    words = (*WORDS, "--event", event_id(eks, eks.events[0])) if more else WORDS
    done = hpj(*words, "--json")
    assert (done.code, done.error["detail"]["right"]) == (4, {"action": action})


def test_words_that_are_newer_than_this_package_are_shown(example, eks, hpj):
    def newer(answer):
        answer["Events"][0].update(EventLevel="Critical", ResourceType="Rack")

    example.faults.later[LIST] = newer
    found = hpj(*WORDS, "--level", "error", "--json").ok().json["events"]
    assert (found[0]["level"], found[0]["resource"]) == ("Critical", "Rack")


def test_what_is_done_to_a_node_is_an_event(eks, hpj):
    eks.events = []
    node = eks.nodes[1].instance_id
    hpj("node", "replace", node, "--cluster", eks.name, "--yes").ok()
    (found,) = hpj(*WORDS, "--node", node, "--json").ok().json["events"]
    assert "being replaced" in found["description"]
