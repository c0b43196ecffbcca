"""Whether one can submit from here: ``hpj clusters``, ``hpj config add``, against the testbed's AWS."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import tomllib
from functools import partial

import pytest

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters import reach
from hyperpod_jlab.clusters.aws import HyperpodClusters
from hyperpod_jlab.clusters.connect import connect
from hyperpod_jlab.clusters.reach import ReachChecker
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.run.services import Hyperpod
from testbed.aws.control_plane import ControlPlane
from testbed.aws.example import example_account
from testbed.aws.studio import SimulatedStudio
from tests.aws.api_server import REVIEW, api_server
from tests.aws.conftest import REGION
from tests.aws.shell import Shell

DESCRIBE = "eks:DescribeCluster"
SINFO = "printf 'ip-10-0-0-%s\\n' 2 3 4 5"


@pytest.fixture
def example(endpoint, no_aws, tmp_path):
    """The example account, from a machine without Slurm."""
    endpoint.account = example_account(REGION)
    no_aws.setenv("PATH", str(tmp_path / "bin"))
    return endpoint


@pytest.fixture
def server(example, tmp_path, no_aws):
    no_aws.setenv("PATH", os.defpath)
    with api_server(tmp_path) as made:
        no_aws.setenv("PATH", str(tmp_path / "bin"))
        example.account.control_planes[REGION, "research"] = made.plane
        yield made


@pytest.fixture
def studio(example, no_aws, tmp_path, home):
    """A space that has the example's file system; runs go to its partition there."""
    made = SimulatedStudio(tmp_path, REGION)
    made.write(example.account)
    made.mount_point.mkdir(parents=True)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    home.config.write_text(f'[storage]\npath = "{made.mount_point}"\n')
    return made


@pytest.fixture
def found(hpj):
    """Whether one can submit to a cluster, by its name."""

    def look(name):
        return hpj("show", name, "--json").ok().json["hyperpod"]["reach"]

    return look


def test_each_cluster_says_it(example, hpj):
    listed = hpj("clusters", "--json").ok().json["clusters"]
    assert {one["name"]: one["hyperpod"]["reach"]["word"] for one in listed if one["hyperpod"]} == {
        "ml-cluster": "no-file-system",
        "research-eks": "not-in-service",
        "older-cluster": "no-login-node",
        "first-try": "not-in-service",
    }
    shown = hpj("clusters").ok()
    assert "no-file-system" in shown.out.splitlines()[2]
    assert "what is missing to submit" in shown.err


def test_one_that_lets_us_in(server, hpj, found):
    reach = found("research-eks")
    assert reach["word"] == "ready"
    assert tomllib.loads(reach["config"])["clusters"]["research-eks"]["eks"] == "research"
    ((path, token, asked),) = server.asked
    assert path == REVIEW
    assert asked["spec"]["resourceAttributes"]["verb"] == "create"
    signed = base64.urlsafe_b64decode(token.removeprefix("Bearer k8s-aws-v1.") + "==")
    assert b"X-Amz-Signature" in signed
    assert "you can add 1 to the configuration" in hpj("clusters").ok().err


@pytest.mark.parametrize(("status", "word"), [(401, "not-let-in"), (403, "not-let-in"), (503, "no-way")])
def test_one_that_does_not(server, found, status, word):
    server.status = status
    assert found("research-eks")["word"] == word


def test_one_that_lets_us_in_and_no_further(server, found):
    server.allowed = False
    assert found("research-eks")["word"] == "no-namespace"


def test_a_private_address_that_does_not_answer(example, found, server):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        example.account.control_planes[REGION, "research"] = ControlPlane(
            f"https://127.0.0.1:{closed.getsockname()[1]}", server.plane.authority, private=True
        )
        reach = found("research-eks")
    assert reach["word"] == "no-way"
    assert "only in its VPC" in reach["sentence"]


def test_without_the_right_to_see_the_eks_cluster(example, found):
    example.faults.deny(DESCRIBE)
    reach = found("research-eks")
    assert reach["word"] == "no-right"
    assert DESCRIBE in reach["sentence"]


def test_a_slow_one_is_given_up(example, hpj, monkeypatch):
    monkeypatch.setattr(reach, "TIMEOUT_S", 0.5)
    example.faults.slow[DESCRIBE] = 1.5
    listed = hpj("clusters", "--json").ok().json["clusters"]
    assert {one["name"]: one["hyperpod"]["reach"]["word"] for one in listed if one["hyperpod"]}[
        "research-eks"
    ] == "no-way"


def test_the_machines_slurm_is_the_clusters(studio, found, home, tmp_path, hpj):
    Shell(home, tmp_path / "bin").install("sinfo", SINFO)
    reach = found("ml-cluster")
    assert (reach["word"], reach["sentence"][-24:]) == ("ready", "knows 4 of its 4 instances"[-24:])
    assert f'storage = "/fsx{studio.partition}"' in reach["config"]
    # Those of the older cluster have other addresses, or would be the same machines.
    done = hpj("config", "add", "train", "--hyperpod", "ml-cluster").ok()
    assert "train is added" in done.out
    assert found("ml-cluster")["word"] == "configured"
    assert home.config.read_text().startswith("[storage]")
    twice = hpj("config", "add", "again", "--hyperpod", "ml-cluster", "--json")
    assert (twice.code, twice.error["code"]) == (2, "cluster_exists")


def test_another_slurm(studio, found, home, tmp_path):
    Shell(home, tmp_path / "bin").install("sinfo", "echo elsewhere-1")
    reach = found("ml-cluster")
    assert reach["word"] == "no-login-node"
    assert "another cluster" in reach["sentence"]


def test_adding_without_writing(example, hpj, home):
    before = home.config.read_text()
    text = hpj("config", "add", "far", "--hyperpod", "older-cluster", "--login-node", "me@door", "--dry-run").ok().out
    added = tomllib.loads(text)["clusters"]["far"]
    assert (added["transport"], added["login_nodes"]) == ("ssh", ["me@door"])
    eks = hpj("config", "add", "research-eks", "--namespace", "team", "--dry-run", "--json").ok()
    assert tomllib.loads(eks.json["config"])["clusters"]["research-eks"]["namespace"] == "team"
    assert not eks.json["written"]
    assert home.config.read_text() == before


async def test_a_cluster_that_does_not_answer_is_not_added_where_it_is_tested(example, hpj, home):
    before = home.config.read_text()
    services = Hyperpod()
    try:
        asked = partial(connect, services, "ml-cluster", "far", login_node="127.0.0.1:1")
        refused = await asked(test=True)
        assert (refused.cluster, refused.written) == ("far", False)
        assert isinstance(refused.problem, UnreachableError)
        assert home.config.read_text() == before
        assert (await asked()).written
    finally:
        await services.close()
    assert home.config.read_text().startswith(before)


def test_a_cluster_is_removed(example, hpj, home):
    before = home.config.read_text()
    hpj("config", "add", "far", "--hyperpod", "ml-cluster", "--login-node", "127.0.0.1:1").ok()
    done = hpj("config", "remove", "far").ok()
    assert done.out == f"far is removed from {home.config}.\n"
    assert tomllib.loads(home.config.read_text()) == tomllib.loads(before)
    configured = [one for one in hpj("clusters", "--json").ok().json["clusters"] if one["configured"]]
    assert [one["name"] for one in configured] == ["local"]


def test_what_cannot_be_removed(example, hpj, home):
    far = '[clusters.far]\norchestrator = "slurm"\n'
    before = f'default_cluster = "far"\n{far}'
    home.config.write_text(before)
    for name, code, error in (
        ("nope", 3, "unknown_cluster"),
        ("far", 2, "default_cluster"),
        ("local", 2, "not_in_user_file"),
    ):
        done = hpj("config", "remove", name, "--json")
        assert (done.code, done.error["code"]) == (code, error)
    assert home.config.read_text() == before


@pytest.mark.parametrize(
    ("words", "code", "field"),
    [
        (("no name",), 2, "name"),
        (("research-eks", "--login-node", "x"), 2, "login_node"),
        (("ml-cluster", "--namespace", "x"), 2, "namespace"),
        (("nope",), 3, None),
    ],
)
def test_bad_words_for_it(example, hpj, words, code, field):
    done = hpj("config", "add", *words, "--json")
    assert (done.code, done.error["detail"].get("field")) == (code, field)


async def test_each_is_looked_at_once(example, server):
    aws = Aws(REGION)
    clusters = await HyperpodClusters(Settings(), aws, []).all_clusters()
    reaches = ReachChecker(Settings(), aws, [])
    assert {one.reach.word for one in reaches.with_cached_reach(clusters)} >= {"not-looked"}
    await asyncio.gather(*reaches.start_checks(clusters))
    first = reaches.with_cached_reach(clusters)
    assert reaches.start_checks(clusters) == []
    assert reaches.with_cached_reach(clusters) == first
    assert len(server.asked) == 1
    await asyncio.gather(*reaches.start_checks(clusters, refresh=True))
    assert len(server.asked) == 2
    server.status = 401
    await asyncio.gather(*reaches.start_checks(clusters, refresh=True))
    assert {one.name: one.reach.word for one in reaches.with_cached_reach(clusters)}["research-eks"] == "not-let-in"
    await reaches.close()


def test_an_orchestrator_that_is_not_named_and_one_that_is_new(example, hpj):
    older = hpj("show", "older-cluster", "--json").ok().json
    assert older["orchestrator"] == "slurm"
    assert "so Slurm is assumed" in older["reason"]
