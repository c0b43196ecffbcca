"""``hpj clusters --hyperpod`` and ``hpj nodes --hyperpod``."""

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
    lines = hpj("clusters", "--hyperpod").ok().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("CLUSTER", "ml-cluster", "research-eks", "older-cluster", "first-try"),
    ]
    first = lines[1]
    for words in ("slurm", "in-service", "5/5", "controller-machine 1/1, worker-group-1 4/4"):
        assert words in first
    assert "  train  " in first
    assert "accelerated 6/8 updating" in lines[2]
    assert "update available" in lines[2]
    assert lines[3].split()[1:3] == ["slurm", "updating-software"]


def test_clusters_as_json_in_pages(example, hpj):
    whole = hpj("clusters", "--hyperpod", "--json").ok().json
    assert whole["next"] is None
    assert "notes" not in whole
    first = whole["clusters"][0]
    assert (first["name"], first["state"], first["nodes"], first["status"]) == (
        "ml-cluster",
        "in-service",
        5,
        "InService",
    )
    assert first["created_at"] == "2026-01-05T09:00:00.000Z"
    assert first["groups"][1]["storage"][0]["path"] == "/fsx"
    page = hpj("clusters", "--hyperpod", "--json", "--limit", "3").ok().json
    rest = hpj("clusters", "--hyperpod", "--json", "--cursor", page["next"]).ok().json
    assert page["clusters"] + rest["clusters"] == whole["clusters"]


def test_a_denied_description_is_a_note_and_no_failure(example, hpj):
    example.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    done = hpj("clusters", "--hyperpod").ok()
    assert "note: 1 of 4 clusters could not be described" in done.err
    assert "you do not have the permission sagemaker:DescribeCluster" in done.out
    assert "research-eks" in done.out
    assert hpj("clusters", "--hyperpod", "--json").ok().json["notes"]


def test_nodes_of_a_cluster_that_is_not_configured(example, hpj):
    done = hpj("nodes", "--hyperpod", "ml-cluster").ok()
    assert len(done.out.splitlines()) == 6
    assert "EC2 health check failed" in done.out.splitlines()[-1]
    assert "no cluster of the configuration has hyperpod = 'ml-cluster'" in done.err
    nodes = hpj("nodes", "--hyperpod", "ml-cluster", "--json").ok().json["nodes"]
    assert [row["instance"]["state"] for row in nodes] == [*["running"] * 4, "failed"]
    assert {(row["node"], row["remark"]) for row in nodes} == {(None, None)}
    missing = hpj("nodes", "--hyperpod", "nope", "--json")
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
    nodes = hpj("nodes", "--hyperpod", "ml-cluster", "--json").ok().json["nodes"]
    found = [
        (
            (row["instance"] or {}).get("host", "")[:11],
            (row["node"] or {}).get("name"),
            row["remark"],
        )
        for row in nodes
    ]
    unknown = "the scheduler does not have it"
    assert found[:5] == [
        ("ip-10-0-0-1", None, None),
        ("ip-10-0-0-2", "ip-10-0-0-2", None),
        ("ip-10-0-0-3", None, unknown),
        ("ip-10-0-0-4", None, unknown),
        ("ip-10-0-0-5", "ip-10-0-0-5", None),
    ]
    assert found[5][:2] == ("", "ip-10-0-0-9")
    last = hpj("nodes", "--hyperpod", "ml-cluster").ok().out.splitlines()[-2:]
    assert "EC2 health check failed; the instance is being replaced; health check" in last[0]
    assert "drained" in last[0]
    assert last[1].split()[:8] == ["-"] * 8


def test_a_cluster_by_its_arn_and_without_the_right_to_its_description(example, hpj, slurm):
    arn = example.account.clusters[REGION][0].arn
    nodes = hpj("nodes", "--hyperpod", arn, "--json").ok().json["nodes"]
    assert [row["node"] is not None for row in nodes] == [False, True, False, False, True, True]
    example.faults.deny("sagemaker:DescribeCluster")
    told = hpj("nodes", "--hyperpod", "ml-cluster", "--json").ok().json
    assert told["notes"] == [
        "ml-cluster could not be described: you do not have the permission sagemaker:DescribeCluster"
    ]
    # Without it nobody knows that the first one is the controller.
    assert told["nodes"][0]["remark"] == "the scheduler does not have it"
    assert told["nodes"][1]["node"]["jobs"] == ["7"]


def test_a_scheduler_that_does_not_answer_is_a_note(example, hpj, slurm):
    slurm[0] = UnreachableError("no route to host")
    done = hpj("nodes", "--hyperpod", "ml-cluster").ok()
    assert len(done.out.splitlines()) == 6
    assert "the scheduler of train does not answer: no route to host" in done.err


def test_another_region(example, hpj):
    done = hpj("clusters", "--hyperpod", "--region", "eu-central-1").ok()
    assert "no clusters" in done.err
    assert {call.region for call in example.calls} == {"eu-central-1"}


@pytest.mark.parametrize(
    "words",
    [
        ("clusters", "--region", REGION),
        ("nodes", "--region", REGION),
        ("nodes", "--hyperpod", "c", "--cluster", "local"),
    ],
)
def test_options_that_do_not_fit(hpj, words):
    done = hpj(*words, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")


def test_exit_codes_of_the_faults(example, hpj, no_aws):
    def failed(*words):
        forget_session()  # a command is a process of its own
        done = hpj(*words, "--json")
        return done.code, done.error["code"]

    example.faults.deny("sagemaker:ListClusters")
    assert failed("clusters", "--hyperpod") == (4, "missing_right")
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    assert failed("nodes", "--hyperpod", "ml-cluster") == (4, "invalid_aws_credentials")
    no_aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    no_aws.setattr("hyperpod_jlab.aws.session._ATTEMPTS", 1)
    assert failed("clusters", "--hyperpod") == (5, "aws_unreachable")
    no_aws.delenv("AWS_REGION")
    assert failed("clusters", "--hyperpod") == (2, "no_aws_region")
    no_aws.setitem(sys.modules, "boto3", None)
    assert failed("clusters", "--hyperpod") == (2, "boto3_missing")
    assert "hint: pip install 'hyperpod-jlab[aws]'" in hpj("clusters", "--hyperpod").err


def test_without_the_option_aws_is_not_asked(example, hpj):
    assert hpj("clusters").ok().out.split()[:1] == ["CLUSTER"]
    assert example.calls == []


@pytest.mark.parametrize("name", ["", "x y", "no_such", "a" * 64, "arn:aws:sagemaker:x:1:y"])
@pytest.mark.parametrize("command", ["nodes", "events", "metrics"])
def test_a_name_that_can_be_none_is_refused_in_our_words(endpoint, hpj, command, name):
    done = hpj(command, "--hyperpod", name, "--json")
    assert (done.code, done.error["code"]) == (2, "no_cluster_name")
    assert endpoint.calls == []
