"""A real Kubernetes attached to the AWS endpoint: EKS' way in, nodes that fail and are replaced by others, runs that recover meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import boto3
import pytest

from hyperpod_jlab.clusters.configuration import load_settings
from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.engines.kubernetes.api.eks import EksTokens, eks_access
from hyperpod_jlab.run.services import Hyperpod
from testbed.aws.attached import BedError, order
from testbed.aws.control_plane import AccessEntry
from testbed.aws.eks_tokens import TokenError
from testbed.aws.kubernetes_bed import HEALTH, SCRIPT, AttachedKubernetes, names_of
from testbed.aws.server import AwsServer
from tests.aws.conftest import KEY, REGION

pytestmark = pytest.mark.kubernetes

ADMIN = AccessEntry(("system:masters",))
IMAGE = "localhost/testbed/python:3.11"


@pytest.fixture
def bed(eks_bed):
    return eks_bed


@pytest.fixture
def attached(endpoint, no_aws, bed, home):
    home.config.write_text(
        f'default_cluster = "on-eks"\n[storage]\npath = "{bed.parent / "fsx"}"\n'
        '[clusters.on-eks]\norchestrator = "kubernetes"\neks = "research"\n'
        f'hyperpod = "research-eks"\nimage = "{IMAGE}"\n'
        'storage = { claim = "fsx", mount = "/fsx" }\n'
    )
    with AwsServer(endpoint) as server:
        no_aws.setenv("AWS_ENDPOINT_URL", server.url)
        entries = {"StudioRole": ADMIN}
        made = AttachedKubernetes(endpoint, server.url, bed, REGION, entries=entries)
        if not all(made.is_up(node) for node in made.cluster.nodes):
            order(SCRIPT, bed, "heal")  # a test that failed left a machine off
        with made:
            until(lambda: len(made._up) == 2)
            yield made
    assert made.problems == []


@pytest.fixture
def rows(hpj):
    """What ``hpj nodes`` shows: state at AWS, node, state in Kubernetes, what is said of the instance; by instance id."""

    def found():
        told = hpj("nodes", "--cluster", "research-eks", "--json").ok().json["nodes"]
        return {
            row["instance"]: (
                row["instance_state"],
                *((None, None) if row["name"] == row["instance"] else (row["name"], row["state"])),
                row["instance_reason"],
            )
            for row in told
        }

    return found


def until(done: Callable[[], object], seconds: float = 50) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)


def kubectl(bed: Path, *words: str) -> str:
    return order(SCRIPT, bed, "kubectl", *words)


def well(instance: str) -> tuple[str, str, str, None]:
    return "running", f"hyperpod-{instance}", "up", None


def test_a_cluster_by_its_name_in_eks(attached, bed, hpj):
    """Address and authority from AWS, a token that the API server has shown to STS; who has no access entry is not let in."""
    listed = hpj("nodes", "--cluster", "on-eks", "--json").ok().json["nodes"]
    assert sorted(row["name"] for row in listed) == sorted(names_of(bed))
    (first, _) = listed
    assert (first["instance_type"], first["instance_group"]) == ("ml.p5.48xlarge", "worker-group-1")
    asked = {call.action for call in attached.endpoint.calls}
    assert {"eks:DescribeCluster", "sts:GetCallerIdentity"} <= asked
    labels = kubectl(bed, "get", "nodes", "-o", "jsonpath={.items[*].metadata.labels}")
    assert labels.count(f'"{HEALTH}":"Schedulable"') == 2
    assert labels.count('"sagemaker.amazonaws.com/cluster-name":"research-eks"') == 2

    attached.plane.entries.clear()
    time.sleep(1.1)  # so long the API server believes what it was told
    refused = hpj("jobs", "--cluster", "on-eks", "--json")
    assert refused.code == 4
    assert "access entry" in refused.error["hint"]
    # AWS has the instances all the same.
    told = hpj("nodes", "--cluster", "on-eks", "--json").ok().json
    assert [row["name"] == row["instance"] for row in told["nodes"]] == [True, True]
    (note,) = told["notes"]
    assert note.startswith("the scheduler of on-eks does not answer")
    assert "access entry" in note
    assert attached.authenticator.refused[-1].endswith("role/StudioRole has no access entry")


def test_a_role_has_the_rights_of_its_groups(attached, bed, hpj):
    role = next(iter(attached.plane.entries))
    attached.plane.entries[role] = AccessEntry(("readers",))
    time.sleep(1.1)
    kubectl(bed, "create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
    try:
        assert hpj("jobs", "--cluster", "on-eks", "--json").ok().json["jobs"] == []
        told = hpj("nodes", "--cluster", "on-eks").ok()
        assert "you do not have the permission to list nodes" in told.out + told.err
    finally:
        kubectl(bed, "delete", "clusterrolebinding", "readers")


def test_tokens_that_are_good_for_nothing(attached, monkeypatch):
    """A token is one cluster's, one account's, and goes to STS as it was signed."""
    whose = attached.authenticator.whose

    def token(cluster: str = "research", session: boto3.Session | None = None) -> str:
        return EksTokens(session or boto3.Session(region_name=REGION), cluster).fetch().value

    good = token()
    user = whose(good)
    assert user["groups"] == ["system:masters"]
    assert user["username"].endswith("assumed-role/StudioRole/SageMaker")
    with pytest.raises(TokenError, match="SignatureDoesNotMatch"):
        whose(token("another"))
    with pytest.raises(TokenError, match="SignatureDoesNotMatch"):
        whose(token(session=boto3.Session(KEY, "a wrong secret", region_name=REGION)))
    stranger = boto3.Session("AKIASTRANGER", "of-the-testbed", region_name=REGION)
    with pytest.raises(TokenError, match="InvalidClientTokenId"):
        whose(token(session=stranger))
    with pytest.raises(TokenError, match="does not begin"):
        whose("a-service-account's")
    with pytest.raises(TokenError, match="no address"):
        whose("k8s-aws-v1.\N{SNOWMAN}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://sts.example.com")
    with pytest.raises(TokenError, match=r"not addressed to STS, but to sts\.example\.com"):
        whose(token())


def test_an_expired_session_is_not_let_in(attached):
    attached.endpoint.account.add_caller(KEY, expired=True)
    with pytest.raises(DeniedError) as caught:
        eks_access("research")
    assert caught.value.code == "expired_aws_credentials"


async def reason(hyperpod: Hyperpod, run_id: str, has: str, seconds: float = 80) -> Run:
    """Wait until a run recovers for a reason with these words; it never ends meanwhile."""
    seen: list[str | None] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run = await hyperpod.runs.get(run_id)
        assert not run.status.ended, run.status
        if run.status.reason_code == "recovering" and has in (run.status.reason or ""):
            return run
        if not seen or seen[-1] != run.status.reason:
            seen.append(run.status.reason)
        await asyncio.sleep(0.3)
    raise AssertionError(f"never recovering because of {has}, but {seen}")


async def begun(hyperpod: Hyperpod, run_id: str, attempt: int = 1) -> str:
    """Wait until an attempt runs; returns its node."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        run = await hyperpod.runs.get(run_id)
        assert not run.status.ended, run.status
        attempts = run.status.attempts
        if len(attempts) == attempt and attempts[-1].nodes and run.state == "running":
            return attempts[-1].nodes[0]
        await asyncio.sleep(0.3)
    raise AssertionError("it never runs")


SLEEPS = ("-c", "[ $HYPERPOD_ATTEMPT = 2 ] || sleep 600", "--no-project-files")


async def test_a_run_recovers_while_its_node_is_replaced(attached, bed, hpj, home):
    """It says so from when AWS is asked for it, and names the node."""
    order(SCRIPT, bed, "heal")  # the training operator answers
    run_id = home.process("submit", *SLEEPS).ok().out.strip()
    hyperpod = Hyperpod(load_settings())
    try:
        node = await begun(hyperpod, run_id)
        home.process("node", "reboot", node.removeprefix("hyperpod-"), "--cluster", "research-eks", "--yes").ok()
        run = await reason(hyperpod, run_id, f"HyperPod reboots {node}, on which it runs")
        assert run.state == "running"
        attached.endpoint.advance(timedelta(minutes=3))
        await hyperpod.runs.act(run_id, "cancel")
        run = await hyperpod.runs.wait(run_id)
        assert run.state == "cancelled"
    finally:
        await hyperpod.close()
    until(lambda: all(attached.is_up(one) for one in attached.cluster.nodes))


def test_a_killed_kubelet_is_a_failed_instance_and_comes_back_as_another(attached, bed, rows):
    first = rows()
    assert first == {name: well(name) for name in first}
    old = attached.cluster.nodes[0].instance_id
    order(SCRIPT, bed, "component-kill", "node1", "kubelet")
    until(lambda: rows()[old][0] == "failed")

    attached.endpoint.advance(timedelta(seconds=15))
    until(lambda: rows()[old][2] == "failed")  # HyperPod's label says so
    both = rows()
    (new,) = set(both) - set(first)
    assert both[old][:2] == ("ending", f"hyperpod-{old}")
    assert both[new] == ("starting", None, None, "it has not joined the cluster yet")

    attached.endpoint.advance(timedelta(minutes=25))
    until(lambda: rows().get(new) == well(new))
    (other,) = set(first) - {old}
    until(lambda: rows() == {new: well(new), other: well(other)})  # the old node is removed
    assert names_of(bed) == [f"hyperpod-{new}", f"hyperpod-{other}"]


def test_a_reboot_that_is_asked_of_aws(attached, rows, hpj):
    """The node is gone for a while, and comes back as the same one."""
    before = rows()
    node = attached.cluster.nodes[1]
    hpj("node", "reboot", node.instance_id, "--cluster", "research-eks", "--yes").ok()
    until(lambda: not attached.is_up(node))
    until(lambda: rows()[node.instance_id][2] == "rebooting")
    attached.endpoint.advance(timedelta(minutes=3))
    until(lambda: attached.is_up(node))
    until(lambda: rows() == before)


def test_who_labels_a_node_orders_its_replacement(attached, bed, rows):
    """As HyperPod's documentation says it is done by hand."""
    old = attached.cluster.nodes[1].instance_id
    order = f"{HEALTH}=UnschedulablePendingReplacement"
    kubectl(bed, "label", "node", f"hyperpod-{old}", order, "--overwrite")
    until(lambda: rows()[old][0] == "ending")
    attached.endpoint.advance(timedelta(minutes=25))
    until(lambda: old not in rows() and all(row[:1] == ("running",) for row in rows().values()))
    until(lambda: all(row == well(name) for name, row in rows().items()))


@pytest.mark.full
@pytest.mark.timeout(300)
async def test_a_run_goes_on_elsewhere_when_its_node_was_replaced(attached, bed, hpj, home):
    """On a node that is taken away, then in another attempt: at no time has it failed."""
    order(SCRIPT, bed, "heal")  # the training operator's node may have been another test's
    run_id = home.process("submit", *SLEEPS).ok().out.strip()
    hyperpod = Hyperpod(load_settings())
    try:
        node = await begun(hyperpod, run_id)
        home.process("node", "replace", node.removeprefix("hyperpod-"), "--cluster", "research-eks", "--yes").ok()
        await reason(hyperpod, run_id, f"HyperPod replaces {node}, on which it runs")
        attached.endpoint.advance(timedelta(minutes=25))
        states = [run.state async for run in hyperpod.runs.watch(run_id)]
        assert set(states[:-1]) <= {"running", "waiting"}
        run = await hyperpod.runs.get(run_id)
        assert (run.state, len(run.status.attempts)) == ("succeeded", 2), run.status
        assert run.status.attempts[0].reason_code in {"node_fail", "lost"}  # its pod may be gone
    finally:
        await hyperpod.close()
    until(lambda: all(attached.is_up(one) for one in attached.cluster.nodes))


def test_a_folder_that_is_no_such_testbed(tmp_path):
    with pytest.raises(BedError, match="--names"):
        names_of(tmp_path)
