"""Why a run waits: what has room now and what never has, by rules; and on a real cluster without queues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hyperpod_jlab.core.cluster import Holder
from hyperpod_jlab.engines.kubernetes.tables.kueue import (
    ClusterQueueRow,
    QuotaRow,
    available,
    cluster_queue,
    local_queue,
)
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, pod_row
from hyperpod_jlab.engines.kubernetes.waiting.what_if import (
    Infeasible,
    QueueHeadroom,
    QuotaRequest,
    compute_headroom,
    find_blockers,
    find_holders,
    find_infeasible,
    free_nodes,
    smaller,
)
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions
from tests.kubernetes.table_fixtures import create, kubectl, pod, until, why

GPU = "nvidia.com/gpu"

# ---------------------------------------------------------------------------------- room, pure


def node(name: str, gpus: int = 8, **given: Any) -> NodeFacts:
    return node_facts(
        {
            "metadata": {"name": name, "labels": given.pop("labels", {})},
            "spec": given,
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "allocatable": {"cpu": "64", "memory": "512Gi", GPU: str(gpus)},
            },
        }
    )


def held(name: str, on: str, gpus: int, user: str = "bob", job: str | None = None) -> PodRow:
    labels = {"hyperpod-jlab/user": user}
    row = pod_row(
        {
            "metadata": {
                "name": name,
                "namespace": "a",
                "labels": {**labels, **({"training.kubeflow.org/job-name": job} if job else {})},
            },
            "spec": {"nodeName": on, "containers": [{"resources": {"limits": {GPU: str(gpus)}}}]},
            "status": {"phase": "Running"},
        }
    )
    assert row is not None
    return row


def wanted(nodes: int, gpus: int, **labels: str) -> QuotaRequest:
    return QuotaRequest(nodes, {GPU: gpus * 1000, "cpu": 4000}, labels)


def test_fewer_nodes_that_have_room() -> None:
    nodes = [node("a"), node("b"), node("c")]
    free = free_nodes(nodes, [held("p", "a", 1)], {})
    ways = smaller(wanted(3, 8), free, None)
    assert tuple(way.text for way in ways.changes) == ("with 2 nodes instead of 3 (--nodes 2)",)


def test_fewer_accelerators_where_no_node_has_so_many() -> None:
    free = free_nodes([node("a")], [held("p", "a", 5)], {})
    ways = smaller(wanted(1, 8), free, None)
    assert tuple(way.text for way in ways.changes) == (
        "with 3 accelerators on each node instead of 8 (--gpus-per-node 3)",
    )
    ways = smaller(wanted(4, 8), free, None)
    assert tuple(way.text for way in ways.changes) == (
        "with 1 node instead of 4 and 3 accelerators on each node instead of 8 (--nodes 1 --gpus-per-node 3)",
    )


def test_nothing_where_all_is_taken() -> None:
    free = free_nodes([node("a")], [held("p", "a", 8)], {})
    ways = smaller(wanted(1, 2), free, None)
    assert (tuple(way.text for way in ways.changes), ways.try_count) == ((), 1)


def test_nodes_that_take_no_pods_have_no_room() -> None:
    nodes = [
        node("cordoned", unschedulable=True),
        node("special", taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}]),
        node("gpu", taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}]),
        node("other", labels={"node.kubernetes.io/instance-type": "ml.g5.xlarge"}),
    ]
    assert len(free_nodes(nodes, [], {})) == 2
    assert len(free_nodes(nodes, [], {"node.kubernetes.io/instance-type": "ml.g5.xlarge"})) == 1


def test_the_queue_s_quota_counts_too() -> None:
    room = QueueHeadroom({"h100": {GPU: 10_000, "cpu": 100_000}, "a100": {GPU: 4_000}})
    free = free_nodes([node("a"), node("b"), node("c")], [], {})
    assert room.nodes(wanted(1, 4).per_pod) == 2
    ways = smaller(wanted(3, 4), free, room)
    assert tuple(way.text for way in ways.changes) == ("with 2 nodes instead of 3 (--nodes 2)",)


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert smaller(wanted(2, 8), None, None).try_count == 0


def test_what_no_node_can_ever_take() -> None:
    nodes = [node("a", labels={"t": "x"}), node("b", 4)]
    assert find_infeasible(wanted(1, 8), nodes) is None
    assert find_infeasible(wanted(1, 9), nodes) == Infeasible(
        "it requests 9 GPUs on each node, but no node has more than 8 GPUs", may_be_added=False, resource=GPU
    )
    assert find_infeasible(wanted(1, 99), []) is None
    small = replace(wanted(1, 1), per_pod={"memory": 2**40 * 1000})
    assert find_infeasible(small, nodes) == Infeasible(
        "it requests 1024 GiB of memory on each node, but no node has more than 512 GiB of memory",
        may_be_added=False,
        resource="memory",
    )
    growing = [node("a", labels={"karpenter.sh/nodepool": "p"})]
    never = find_infeasible(wanted(1, 9), growing)
    assert never is not None
    assert never.may_be_added


def test_the_label_that_no_node_has_is_named() -> None:
    nodes = [node("a", labels={"t": "x", "u": "1"}), node("b", labels={"t": "y", "u": "2"})]
    assert find_infeasible(wanted(1, 1, t="x", u="3"), nodes) == Infeasible(
        "no node has the label u=3", may_be_added=True, label="u"
    )
    assert find_infeasible(wanted(1, 1, t="x", u="2"), nodes) == Infeasible(
        "no node has the labels t=x, u=2", may_be_added=True, label="t"
    )


def test_nodes_that_are_ill_may_be_well_tomorrow() -> None:
    health = "sagemaker.amazonaws.com/node-health-status"
    asked = QuotaRequest(1, {GPU: 1000}, {health: "Schedulable"})
    assert find_infeasible(asked, [node("a", labels={health: "Unschedulable"})]) is None


def test_who_holds_what() -> None:
    pods = [
        held("a", "n1", 4, "bob", "x"),
        held("b", "n2", 4, "bob", "x"),
        held("c", "n1", 1, "carol"),
        held("d", "n1", 0, "dave"),
    ]
    assert find_holders(pods, GPU) == (
        Holder("bob", accelerators=8, nodes=2, jobs=1),
        Holder("carol", accelerators=1, nodes=1, jobs=1),
    )
    assert [one.user for one in find_holders(pods, None)] == ["bob", "carol", "dave"]
    first, second = find_blockers(pods, GPU, [])
    assert (first.name, first.user, first.nodes, first.accelerators) == ("x", "bob", 2, 8)
    assert (second.name, second.user, second.accelerators) == ("c", "carol", 1)


# ---------------------------------------------------------------------------------- quota, pure


def quota(nominal: int, used: int, **limits: int) -> QuotaRow:
    given: dict[str, Any] = {"borrowing": None, "lending": None, "borrowed": 0, **limits}
    return QuotaRow("h100", GPU, nominal, used=used, **given)


def queue(name: str, one: QuotaRow, cohort: str | None = "all") -> ClusterQueueRow:
    return ClusterQueueRow(name, cohort, None, (one,), 0, 0)


@pytest.mark.parametrize(
    ("mine", "other", "cohort", "left", "most"),
    [
        (quota(4, 1), quota(4, 0), None, 3, 4),
        (quota(4, 1), quota(4, 0), "all", 7, 8),
        (quota(4, 1), quota(4, 4), "all", 3, 8),
        (quota(4, 4), quota(4, 4), "all", 0, 8),
        (quota(4, 1, borrowing=2), quota(4, 0), "all", 5, 6),
        (quota(4, 6, borrowing=2), quota(4, 0), "all", 0, 6),
        (quota(4, 1), quota(4, 0, lending=1), "all", 4, 5),
        (quota(4, 0, lending=1), quota(4, 0, lending=0), "all", 4, 4),
        (quota(0, 0), quota(4, 3), "all", 1, 4),
    ],
)
def test_what_is_left_of_a_quota_with_what_others_lend(
    mine: QuotaRow, other: QuotaRow, cohort: str | None, left: int, most: int
) -> None:
    first = queue("mine", mine, cohort)
    assert available(first, mine, [first, queue("other", other)]) == (left, most)
    room = compute_headroom(first, [first, queue("other", other)], ignore_usage=True)
    assert room.by_flavor == {"h100": {GPU: most}}


def test_kueue_s_two_versions() -> None:
    old = {"metadata": {"name": "q"}, "spec": {"cohort": "c"}}
    new = {"metadata": {"name": "q"}, "spec": {"cohortName": "c"}}
    assert cluster_queue(old) == cluster_queue(new)
    stopped = {"metadata": {"name": "l", "namespace": "a"}, "spec": {"stopPolicy": "HoldAndDrain"}}
    problem = local_queue(stopped).problem
    assert problem is not None
    assert problem[0] == "Stopped"


# ---------------------------------------------------------------------------------- a real cluster


@pytest.mark.full
async def test_gpus_that_others_have(session: KubernetesSession) -> None:
    image = session.cluster.image
    for number, name in enumerate(session.cluster.nodes):
        holder = pod(f"holder-{number}", image, {GPU: "1"})
        holder["spec"]["nodeName"] = name
        await create(session, holder)
    run_id = await session.submit("true", resources={"gpus_per_node": 8})
    told = await why(session, run_id, "unschedulable")
    assert told.reason is not None
    assert "have too few free GPUs" in told.reason
    mine = next(one for one in told.holders if one.user == session.namespace)
    assert (mine.accelerators, mine.nodes) == (len(session.cluster.nodes), len(session.cluster.nodes))
    assert told.tried
    for way in tuple(way.text for way in told.would_start_now):
        assert "--gpus-per-node" in way
    answer = await session.hpj("why", run_id)
    assert "in use by" in answer.out
    await kubectl(session, "delete", "pods", "--all", "--now")


@pytest.mark.full
async def test_an_image_that_is_not_there(session: KubernetesSession) -> None:
    run_id = await session.submit("true", environment={"image": "localhost/none/such:1"})
    told = await why(session, run_id, "image_registry")
    assert told.reason is not None
    assert "localhost/none/such:1" in told.reason
    assert told.holders == ()


@pytest.mark.full
async def test_a_namespace_s_quota(session: KubernetesSession) -> None:
    await kubectl(session, "create", "quota", "few", "--hard=count/pods=1")
    run_id = await session.submit("sleep 60", resources={"nodes": 2})

    told = await why(session, run_id, "quota_exceeded")
    assert told.reason is not None
    assert "the quota few of the namespace does not allow it" in told.reason
    assert "pods=1 is allowed" in told.reason


@pytest.mark.full
async def test_who_may_see_next_to_nothing_is_told_what_can_be(session: KubernetesSession, sessions: Sessions) -> None:
    narrow = sessions(kubeconfig=session.cluster.user("narrow", session.namespace))
    run_id = await narrow.submit("true", environment={"image": "localhost/none/such:1"})
    told = await why(narrow, run_id, "image_registry")
    assert told.reason is not None
    assert "localhost/none/such:1" in told.reason
    answer = await narrow.hpj("why", run_id)
    assert answer.code == 0, answer.err
    assert "localhost/none/such:1" in answer.out


@pytest.mark.full
async def test_a_run_that_is_held(session: KubernetesSession) -> None:
    run_id = await session.submit("sleep 60", environment={"image": "localhost/none/such:1"})
    await why(session, run_id, "image_registry")
    await session.hyperpod.runs.act(run_id, "hold")
    told = await until(lambda: session.hyperpod.runs.explain_wait(run_id), lambda told: told.reason_code == "held")
    assert told.reason == "it is suspended: it starts when it is released"
