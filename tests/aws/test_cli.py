"""``hpj clusters --hyperpod`` and ``hpj nodes --hyperpod``."""

from __future__ import annotations

import sys

import pytest

from hyperpod_jlab.aws.session import forget_session
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
    assert lines[3].split()[1:3] == ["unknown", "updating-software"]


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
    assert "AWS does not let you sagemaker:DescribeCluster" in done.out
    assert "research-eks" in done.out
    assert hpj("clusters", "--hyperpod", "--json").ok().json["notes"]


def test_nodes_of_a_cluster(example, hpj):
    done = hpj("nodes", "--hyperpod", "ml-cluster").ok()
    assert len(done.out.splitlines()) == 6
    assert "EC2 health check failed" in done.out.splitlines()[-1]
    nodes = hpj("nodes", "--hyperpod", "ml-cluster", "--json").ok().json["nodes"]
    assert [node["state"] for node in nodes] == [*["running"] * 4, "failed"]
    missing = hpj("nodes", "--hyperpod", "nope", "--json")
    assert (missing.code, missing.error["code"]) == (3, "not_found")


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
