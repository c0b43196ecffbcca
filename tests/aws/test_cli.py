"""``hpj clusters``, ``hpj show`` and ``hpj nodes`` with HyperPod clusters."""

from __future__ import annotations

import sys

import pytest

from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.engines.slurm.tables import SlurmTables
from testbed.aws.example import example_account
from tests.aws.conftest import REGION


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def test_the_table_of_clusters(example, hpj, home):
    home.config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    done = hpj("clusters").ok()
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("CLUSTER", "local", "train", "research-eks", "older-cluster", "first-try")
    ]
    train = lines[2]
    for words in ("slurm", "unreachable", "ml-cluster", "in-service", "5/5"):
        assert f"  {words}  " in train
    assert "controller-machine 1/1, worker-group-1 4/4" in train
    eks = lines[3]
    assert eks.split()[1:4] == ["kubernetes", "no", "in-service"]
    assert "accelerated 6/8 updating" in eks
    assert "update available" in eks
    assert lines[4].split()[1:4] == ["slurm", "no", "updating-software"]
    assert "Lifecycle scripts did not run successfully." in lines[5]
    assert "note: 'hpj show NAME' shows what is missing to submit to a cluster from here" in done.err


def test_clusters_as_json_in_pages(example, hpj):
    whole = hpj("clusters", "--json").ok().json
    assert whole["next"] is None
    assert "notes" not in whole
    local, first = whole["clusters"][:2]
    assert (local["name"], local["configured"], local["hyperpod"]) == ("local", True, None)
    assert (first["name"], first["state"], first["nodes"], first["configured"]) == (
        "ml-cluster",
        "in-service",
        5,
        False,
    )
    assert first["configure"] == "hpj config add ml-cluster"
    at_aws = first["hyperpod"]
    assert (at_aws["status"], at_aws["created_at"]) == ("InService", "2026-01-05T09:00:00.000Z")
    assert at_aws["groups"][1]["storage"][0]["path"] == "/fsx"
    page = hpj("clusters", "--json", "--limit", "3").ok().json
    rest = hpj("clusters", "--json", "--cursor", page["next"]).ok().json
    names = [one["name"] for one in page["clusters"] + rest["clusters"]]
    assert names == [one["name"] for one in whole["clusters"]]


def test_a_denied_description_is_a_note_and_no_failure(example, hpj):
    example.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    done = hpj("clusters").ok()
    assert "note: 1 of 4 clusters could not be described" in done.err
    assert "you do not have the permission sagemaker:DescribeCluster" in done.out
    assert "research-eks" in done.out
    assert hpj("clusters", "--json").ok().json["notes"]


def test_a_cluster_with_its_settings_and_what_is_missing_to_submit(example, hpj, home):
    done = hpj("show", "ml-cluster").ok()
    assert "configured    no; add it with: hpj config add ml-cluster" in done.out
    assert "submit from here: no-file-system" in done.out
    assert "node-recovery  Automatic" in done.out
    assert "worker-group-1" in done.out.splitlines()[-1]
    found = hpj("show", "ml-cluster", "--json").ok().json
    assert found["hyperpod"]["reach"]["word"] == "no-file-system"
    home.config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    by_name, by_aws = (hpj("show", name, "--json").ok().json for name in ("train", "ml-cluster"))
    assert (by_name["name"], by_name["configured"]) == ("train", True)
    assert by_name["hyperpod"]["name"] == by_aws["hyperpod"]["name"] == "ml-cluster"
    assert by_aws["name"] == "train"


def test_what_is_neither_a_run_nor_a_cluster(example, hpj):
    done = hpj("show", "nowhere", "--json")
    assert (done.code, done.error["message"]) == (3, "no run or cluster named 'nowhere' found")


def test_nodes_of_a_cluster_that_is_not_configured(example, hpj):
    done = hpj("nodes", "ml-cluster").ok()
    assert len(done.out.splitlines()) == 6
    assert "EC2 health check failed" in done.out.splitlines()[-1]
    assert "note: no scheduler was asked, because ml-cluster is not configured" in done.err
    nodes = hpj("nodes", "--cluster", "ml-cluster", "--json").ok().json["nodes"]
    assert [row["instance_state"] for row in nodes] == [*["running"] * 4, "failed"]
    assert [row["state"] for row in nodes] == [*["running"] * 4, "failed"]
    assert [row["name"] for row in nodes] == [row["instance"] for row in nodes]
    missing = hpj("nodes", "nope", "--json")
    assert (missing.code, missing.error["code"]) == (3, "not_found")


@pytest.fixture
def slurm(home, monkeypatch):
    """The example's cluster in the configuration, with a scheduler that knows two of its nodes and one more."""
    home.config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    nodes = [
        Node("ip-10-0-0-2", "up", jobs=("7",)),
        Node("ip-10-0-0-5", "drained", reason="health check"),
        Node("ip-10-0-0-9", "down"),
    ]

    async def answer(self):
        if isinstance(nodes[0], HyperpodError):
            raise nodes[0]
        return nodes

    monkeypatch.setattr(SlurmTables, "nodes", answer)
    return nodes


def test_nodes_joined_with_the_schedulers(example, hpj, slurm):
    nodes = hpj("nodes", "ml-cluster", "--json").ok().json["nodes"]
    assert nodes == hpj("nodes", "train", "--json").ok().json["nodes"]
    ids = [row["instance"] for row in nodes]
    found = [((row["host"] or "")[:11], row["name"], row["instance_reason"]) for row in nodes]
    unknown = "the scheduler does not know it"
    assert found[:4] == [
        ("ip-10-0-0-1", ids[0], None),
        ("ip-10-0-0-2", "ip-10-0-0-2", None),
        ("ip-10-0-0-3", ids[2], unknown),
        ("ip-10-0-0-4", ids[3], unknown),
    ]
    assert found[4][:2] == ("ip-10-0-0-5", "ip-10-0-0-5")
    assert (nodes[4]["state"], nodes[4]["instance_state"]) == ("drained", "failed")
    assert (nodes[4]["reason"], found[4][2]) == (
        "health check",
        "EC2 health check failed; the instance is being replaced",
    )
    assert found[5][:2] == ("", "ip-10-0-0-9")
    assert (nodes[5]["state"], ids[5]) == ("down", None)
    last = hpj("nodes", "ml-cluster").ok().out.splitlines()[-2:]
    assert "health check; EC2 health check failed; the instance is being replaced" in last[0]
    assert "drained" in last[0]
    assert "AWS lists no instance of this name" in last[1]


def test_a_cluster_by_its_arn_and_without_the_right_to_its_description(example, hpj, slurm):
    arn = example.account.clusters[REGION][0].arn
    nodes = hpj("nodes", arn, "--json").ok().json["nodes"]
    assert [row["name"].startswith("ip-") for row in nodes] == [*(False, True, False, False, True, True)]
    example.faults.deny("sagemaker:DescribeCluster")
    told = hpj("nodes", "ml-cluster", "--json").ok().json
    assert told["notes"][0].startswith(
        "AWS does not describe ml-cluster: you do not have the permission sagemaker:DescribeCluster"
    )
    # Without it nobody knows that the first one is the controller.
    assert told["nodes"][0]["instance_reason"] == "the scheduler does not know it"
    assert told["nodes"][1]["jobs"] == ["7"]


def test_aws_that_lists_no_instances_is_a_note(example, hpj, slurm):
    example.faults.deny("sagemaker:ListClusterNodes")
    done = hpj("nodes", "train").ok()
    assert [line.split()[0] for line in done.out.splitlines()] == [
        *("NODE", "ip-10-0-0-2", "ip-10-0-0-5", "ip-10-0-0-9")
    ]
    assert "note: AWS does not list the instances" in done.err


def test_a_scheduler_that_does_not_answer_is_a_note(example, hpj, slurm):
    slurm[0] = UnreachableError("no route to host")
    done = hpj("nodes", "--cluster", "ml-cluster").ok()
    assert len(done.out.splitlines()) == 6
    assert "the scheduler of train does not answer: no route to host" in done.err


def test_another_region(example, hpj):
    done = hpj("clusters", "--region", "eu-central-1").ok()
    assert [line.split()[0] for line in done.out.splitlines()] == ["CLUSTER", "local"]
    assert {call.region for call in example.calls} == {"eu-central-1"}
    assert hpj("clusters", "--region", "../x", "--json").error["code"] == "no_aws_region"


def test_a_cluster_that_is_given_twice(hpj):
    done = hpj("nodes", "local", "--cluster", "local", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")


def test_exit_codes_of_the_faults(example, hpj, no_aws):
    def failed():
        forget_session()  # a command is a process of its own
        done = hpj("nodes", "ml-cluster", "--json")
        return done.code, done.error["code"]

    example.faults.deny("sagemaker:ListClusterNodes")
    assert failed() == (4, "missing_right")
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    assert failed() == (4, "invalid_aws_credentials")
    no_aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    no_aws.setattr("hyperpod_jlab.aws.session._ATTEMPTS", 1)
    assert failed() == (5, "aws_unreachable")
    no_aws.delenv("AWS_REGION")
    assert failed() == (2, "no_aws_region")
    no_aws.setitem(sys.modules, "boto3", None)
    assert failed() == (2, "boto3_missing")
    assert "hint: pip install 'hyperpod-jlab[aws]'" in hpj("nodes", "ml-cluster").err


def test_a_fault_of_aws_hides_no_configured_cluster(example, hpj):
    example.faults.deny("sagemaker:ListClusters")
    done = hpj("clusters").ok()
    assert [line.split()[0] for line in done.out.splitlines()] == ["CLUSTER", "local"]
    assert "note: AWS does not list all HyperPod clusters: you do not have the permission" in done.err


@pytest.mark.parametrize("name", ["", "x y", "no_such", "a" * 64, "arn:aws:sagemaker:x:1:y"])
@pytest.mark.parametrize("command", ["nodes", "events", "metrics"])
def test_a_name_that_can_be_none_is_refused_in_our_words(endpoint, hpj, command, name):
    done = hpj(command, "--cluster", name, "--json")
    assert (done.code, done.error["code"]) == (2, "no_cluster_name")
    assert endpoint.calls == []
