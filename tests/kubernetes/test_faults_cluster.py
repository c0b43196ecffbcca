"""Parts of a real cluster that die under a run: the API server, a kubelet, a container, a pod, a node. Nothing that was said is lost or read twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.fault_fixtures import follow, numbers, read, until, whole
from tests.kubernetes.session_fixtures import KubernetesSession

LONG = pytest.mark.timeout(400)


def node_of(session: KubernetesSession, run_id: str, pod: str = "master-0") -> str:
    """The node of a run's pod."""
    found = session.cluster.get("pod", f"run-{run_id}-{pod}", session.namespace)
    return str(found["spec"]["nodeName"])


def kill_container(session: KubernetesSession, run_id: str, pod: str = "master-0") -> None:
    """SIGKILL to the first process of a pod's container, as the kernel does when memory is short."""
    found = session.cluster.get("pod", f"run-{run_id}-{pod}", session.namespace)
    (status,) = found["status"]["containerStatuses"]
    number = status["containerID"].rpartition("/")[2]
    find = f"grep -l {number} /proc/[0-9]*/cgroup | cut -d/ -f3 | sort -n | head -n 1"
    session.cluster.exec(found["spec"]["nodeName"], "sh", "-c", f"kill -9 $({find})")


async def said(session: KubernetesSession, run_id: str, number: int, attempt: int = 1) -> None:
    """Wait until a run has said that number."""
    await session.running(run_id, attempt)
    for _ in range(300):
        if str(number) in await read(session, run_id, attempt=attempt):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"it never said {number}")


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.full)], ids=["restarted", "60-s"])
@pytest.mark.full
@LONG
async def test_the_api_server_is_killed(
    kubernetes: KubernetesTestbed, session: KubernetesSession, seconds: float
) -> None:
    count = 60 + round(seconds * 10)
    run_id = await session.submit(numbers(count))
    reading = asyncio.create_task(follow(session, run_id))
    await said(session, run_id, 5)
    kubernetes.component_kill("control", "kube-apiserver")
    await asyncio.sleep(seconds)
    during = await session.hyperpod.runs.get(run_id)
    assert during.state in {"running", "unknown"}
    kubernetes.component_start("control", "kube-apiserver")
    run = await session.ended(run_id, 180)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    assert await asyncio.wait_for(reading, 60) == whole(count)
    assert session.log(run_id).split() == whole(count)


@pytest.mark.full
@LONG
async def test_a_kubelet_is_killed_and_comes_back(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """The pod goes on; who reads its log through the API server waits until the kubelet is back."""
    run_id = await session.submit(numbers(150))
    reading = asyncio.create_task(follow(session, run_id))
    await said(session, run_id, 5)
    node = node_of(session, run_id)
    kubernetes.component_kill(node, "kubelet")
    await asyncio.sleep(6)
    assert (await session.hyperpod.runs.get(run_id)).state == "running"
    kubernetes.component_start(node, "kubelet")
    run = await session.ended(run_id, 180)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    assert await asyncio.wait_for(reading, 60) == whole(150)
    assert session.log(run_id).split() == whole(150)


async def goes_on(session: KubernetesSession, run_id: str, reading: asyncio.Task[list[str]], count: int) -> None:
    """A run succeeds in its second attempt, and both are whole in one log."""
    run = await session.ended(run_id, 200)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 2), run.status
    first, second = (session.log(run_id, attempt=number).split() for number in (1, 2))
    assert first == whole(count)[: len(first)]
    assert len(first) >= 5
    assert second == whole(count)
    assert await asyncio.wait_for(reading, 60) == [*first, *second]


async def is_struck(session: KubernetesSession, strike: Callable[[str], object]) -> None:
    """A run whose pod dies of the strike: the operator makes it anew."""
    run_id = await session.submit(numbers(80))
    reading = asyncio.create_task(follow(session, run_id))
    await said(session, run_id, 5)
    strike(run_id)
    await goes_on(session, run_id, reading, 80)


@pytest.mark.full
@LONG
async def test_a_pod_is_deleted_while_it_is_followed(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """It comes anew and opens the next attempt."""

    def delete(run_id: str) -> None:
        pod = f"run-{run_id}-master-0"
        kubernetes.kubectl("delete", "pod", pod, "--wait=false", namespace=session.namespace)

    await is_struck(session, delete)


@LONG
async def test_a_container_is_killed(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """The operator makes its pod anew."""
    await is_struck(session, lambda run_id: kill_container(session, run_id))
    del kubernetes


def apart(must: bool) -> dict[str, Any]:
    """A patch by which the pods of a run go to different nodes, or wait; or only where that can be."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"test": "apart"}}}
    rule: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if not must:
        weighed = [{"weight": 100, "podAffinityTerm": term}]
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": weighed}
    one = {"metadata": {"labels": {"test": "apart"}}, "spec": {"affinity": {"podAntiAffinity": rule}}}
    return {"template": one}


async def lose_node(
    kubernetes: KubernetesTestbed, session: KubernetesSession, count: int, patch: dict[str, Any]
) -> tuple[str, str]:
    """Submit a run on two nodes, and when it speaks switch the second off; returns the run and the node."""
    run_id = await session.submit(numbers(count), resources={"nodes": 2}, kubernetes={"patch": patch})
    await said(session, run_id, 5)
    node = node_of(session, run_id, "worker-0")
    assert node != node_of(session, run_id)
    kubernetes.node_kill(node)
    run = await session.until(run_id, lambda run: run.status.attempts[0].state == "failed", 120)
    first = run.status.attempts[0]
    assert not run.status.ended, run.status
    assert (first.state, first.reason_code) == ("failed", "node_fail"), first
    assert node in str(first.reason), first
    said_of_it = session.log(run_id, 0, 0, attempt=1).split()
    assert said_of_it == whole(count)[: len(said_of_it)]
    return run_id, node


async def goes_on_in_two(session: KubernetesSession, run_id: str, count: int) -> None:
    """It has succeeded in its second attempt, of which both logs are whole."""
    run = await session.ended(run_id, 240)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 2), run.status
    for rank in (0, 1):
        assert session.log(run_id, rank, attempt=2).split() == whole(count)


@pytest.mark.full
@LONG
async def test_a_node_is_lost_for_good(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """The attempt says which node is gone; when the admin has removed it, the run goes on elsewhere as another attempt."""
    run_id, node = await lose_node(kubernetes, session, 300, apart(must=False))
    kubernetes.kubectl("delete", "node", node)
    await goes_on_in_two(session, run_id, 300)


@pytest.mark.full
@LONG
async def test_a_node_is_lost_and_there_is_no_other(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """The run says that it waits for the node, then that its new pod has no room; it goes on when the node is back."""
    run_id, node = await lose_node(kubernetes, session, 300, apart(must=True))
    lost = await session.until(run_id, lambda run: "administrator" in (run.status.reason or ""))
    assert (lost.state, lost.status.reason_code) == ("waiting", "recovering"), lost.status
    assert f"node 1 ({node})" in str(lost.status.reason)
    kubernetes.kubectl("delete", "node", node)
    lost = await session.until(run_id, lambda run: "node 1:" in (run.status.reason or ""))
    assert lost.state == "waiting", lost.status
    assert lost.status.reason_code in {"unschedulable", "never_fits"}, lost.status
    why = await session.hyperpod.runs.explain_wait(run_id)
    assert why.reason_code in {"unschedulable", "never_fits"}, why
    kubernetes.node_start(node)
    await goes_on_in_two(session, run_id, 300)


@pytest.mark.full
@LONG
async def test_the_operator_is_down_and_comes_back(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """A submit says so at once and leaves nothing; what runs goes on, and its end is seen."""
    run_id = await session.submit(numbers(100))
    await said(session, run_id, 5)
    scale = ("scale", "deployment", "training-operator")
    kubernetes.kubectl(*scale, "--replicas=0", namespace="kubeflow")
    pods = ("get", "pods", "-o", "name")
    try:
        await until(lambda: not kubernetes.kubectl(*pods, namespace="kubeflow").split(), 60)
        words = ("submit", "--json", "--run-id", "run-later", "--no-project-files", "-c", "echo on")
        answer = await session.hpj(*words)
        assert answer.code not in {0, 1}
        assert answer.error["code"] == "webhook_down", answer.error
        assert answer.error["hint"]
        assert (await session.hyperpod.runs.get(run_id)).state == "running"
        run = await session.until(run_id, lambda run: run.state != "running", 60)
        assert run.state == "succeeded", run.status
        assert session.log(run_id).split() == whole(100)
    finally:
        kubernetes.kubectl(*scale, "--replicas=1", namespace="kubeflow")
    again = answer
    for _ in range(60):
        if (again := await session.hpj(*words)).code == 0:
            break
        await asyncio.sleep(1)
    assert again.code == 0, again
    done = await session.ended("run-later")
    assert (done.state, session.log("run-later")) == ("succeeded", "on\n")
