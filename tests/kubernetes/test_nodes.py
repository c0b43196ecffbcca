"""Nodes: their state from conditions, taints and HyperPod's labels, and what is free on them, on a real cluster too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from hyperpod_jlab.core.cluster import NODE_STATES, Node, Resource
from hyperpod_jlab.engines.kubernetes.submit.resources import milli
from hyperpod_jlab.engines.kubernetes.tables.devices import find_model, resources
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeRows, node_facts, node_state
from hyperpod_jlab.engines.kubernetes.tables.pods import pod_row, sum_container_requests
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions
from tests.kubernetes.table_fixtures import create, kubectl, pod, until

READY = {"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}
HEALTH = "sagemaker.amazonaws.com/node-health-status"
DEEP = "sagemaker.amazonaws.com/deep-health-check-status"
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def node(
    *conditions: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    amounts: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "conditions": list(conditions or [READY]),
            "allocatable": dict(amounts or {"cpu": "8", "memory": "1Gi"}),
        },
    }


# ---------------------------------------------------------------------------------- state, pure


@pytest.mark.parametrize(
    ("found", "word", "words"),
    [
        (node(), "up", None),
        (node(unschedulable=True, taints=[UNSCHEDULABLE]), "drained", "cordoned"),
        (
            node({"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}),
            "not-answering",
            "stopped reporting",
        ),
        (
            node(
                {
                    "type": "Ready",
                    "status": "False",
                    "message": "container runtime network not ready: cni plugin not initialized",
                }
            ),
            "down",
            "not ready: container runtime network not ready: cni plugin not initialized",
        ),
        (
            node({"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}),
            "failing",
            "low on disk space",
        ),
        (
            node(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]),
            "up",
            "only for pods that tolerate nvidia.com/gpu=present:NoSchedule",
        ),
        (node(taints=[{"key": "x", "effect": "PreferNoSchedule"}]), "up", None),
        (
            node(taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]),
            "starting",
            "its system pods are still starting",
        ),
        (node(taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]), "drained", "Karpenter"),
        (node(labels={HEALTH: "Schedulable", DEEP: "Passed"}), "up", None),
        (node(labels={HEALTH: "Unschedulable"}), "failed", "HyperPod found a fault"),
        (
            node(
                labels={
                    HEALTH: "UnschedulablePendingReplacement",
                    "sagemaker.amazonaws.com/fault-types": "NvidiaGpuXid79",
                }
            ),
            "failed",
            "HyperPod replaces it: NvidiaGpuXid79",
        ),
        (node(labels={HEALTH: "UnschedulablePendingReboot"}), "rebooting", "HyperPod restarts it"),
        (node(labels={HEALTH: "Unschedulable", DEEP: "InProgress"}), "maintenance", "deep health check runs"),
        (node(labels={DEEP: "Failed"}), "failed", "did not pass"),
        (
            node(READY, {"type": "AcceleratedHardwareReady", "status": "False", "message": "Xid 79 on GPU 3"}),
            "up",
            "AcceleratedHardwareReady is False: Xid 79 on GPU 3",
        ),
        (
            node(READY, {"type": "KernelDeadlock", "status": "True", "message": "task hung"}),
            "up",
            "KernelDeadlock is True: task hung",
        ),
    ],
)
def test_a_state_and_why(found: dict[str, Any], word: str, words: str | None) -> None:
    state = node_state(found, busy=False)
    assert state.label == word
    assert word in NODE_STATES
    if words is None:
        assert state.reason is None
    else:
        assert words in (state.reason or "")


def test_a_cordoned_node_drains_while_pods_are_on_it_that_would_have_to_go() -> None:
    facts = node_facts(node(unschedulable=True))
    daemon = running("d", owner="DaemonSet")
    assert facts.state([daemon]).label == "drained"
    assert facts.state([daemon, running("p")]).label == "draining"


def test_a_node_that_has_said_nothing_is_starting() -> None:
    found = node()
    found["status"]["conditions"] = []
    assert node_state(found, busy=False).label == "starting"


# ---------------------------------------------------------------------------------- amounts, pure


def running(name: str, *, owner: str | None = None, gpus: int = 0, **meta: Any) -> Any:
    references = [{"kind": owner, "name": "o", "controller": True}] if owner else []
    return pod_row(
        {
            "metadata": {"name": name, "namespace": "a", "ownerReferences": references, **meta},
            "spec": {
                "nodeName": "n",
                "containers": [{"resources": {"requests": {"nvidia.com/gpu": str(gpus), "cpu": "1500m"}}}],
            },
            "status": {"phase": "Running"},
        }
    )


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("2", 2000),
        ("500m", 500),
        ("1.5", 1500),
        ("24581696Ki", 24581696 * 1024 * 1000),
        ("1Gi", 2**30 * 1000),
        ("5G", 5 * 10**12),
        ("1e3", 1_000_000),
        ("100u", 1),
        (3, 3000),
        ("", 0),
        ("nonsense", 0),
    ],
)
def test_quantities(text: object, thousandths: int) -> None:
    assert milli(text) == thousandths


def test_what_a_pod_asks_for_counts_init_containers_and_sidecars() -> None:
    def asks(cpu: str, **more: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [asks("1"), asks("500m")],
        "initContainers": [asks("1", restartPolicy="Always"), asks("3")],
        "overhead": {"cpu": "250m"},
    }
    # While the second init container runs, it and the sidecar: 4; later 2.5. And the overhead.
    assert dict(sum_container_requests(spec)) == {"cpu": 4250}


def test_limits_count_where_nothing_is_requested() -> None:
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
    assert dict(sum_container_requests(spec)) == {"nvidia.com/gpu": 2000}


def test_a_pod_that_has_ended_holds_nothing() -> None:
    assert pod_row({"metadata": {"name": "x"}, "status": {"phase": "Succeeded"}}) is None


def test_devices_have_the_names_that_people_give_them() -> None:
    has = {"nvidia.com/gpu": 8000, "vpc.amazonaws.com/efa": 32000, "cpu": 96000, "pods": 110000}
    found = resources(has, {"nvidia.com/gpu": 3000}, model="h100")
    assert found == (Resource("gpu", "h100", 8, used=3, free=5, accelerator=True), Resource("efa", None, 32, free=32))


def test_parts_of_gpus_are_their_own_kind() -> None:
    found = resources({"nvidia.com/mig-1g.10gb": 7000}, {}, model="h100")
    assert found == (Resource("gpu", "mig-1g.10gb", 7, free=7, accelerator=True),)


def test_a_neuron_chip_is_counted_once() -> None:
    has = {"aws.amazon.com/neuroncore": 32000, "aws.amazon.com/neurondevice": 16000}
    found = {one.name: one.accelerator for one in resources(has, {})}
    assert found == {"neurondevice": True, "neuroncore": False}


def test_the_model_of_the_gpus() -> None:
    assert find_model({}, "ml.p5.48xlarge") == "h100"
    assert find_model({}, "ml.g7e.24xlarge") == "rtx-pro-server-6000"
    assert find_model({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, "p5.48xlarge") == ("a100-sxm4-40gb")
    assert find_model({}, None) is None


def test_without_the_pods_only_totals_are_known() -> None:
    facts = node_facts(node(amounts={"cpu": "8", "nvidia.com/gpu": "8"}))
    (row,) = NodeRows().convert([facts], None, "a")
    assert (row.accelerators, row.accelerators_free, row.cpus, row.cpus_free) == (8, None, 8, None)
    assert row.resources == ()


def test_rows_of_nodes_that_are_as_they_were_are_kept() -> None:
    facts, pods = node_facts(node()), [running("a")]
    rows = NodeRows()
    (first,) = rows.convert([facts], pods, "a")
    assert rows.convert([facts], list(pods), "a")[0] is first
    (more,) = rows.convert([facts], [*pods, running("b")], "a")
    assert more.jobs == ("a", "b")
    (drained,) = rows.convert([node_facts(node(unschedulable=True))], [], "a")
    assert (drained.state, drained.jobs) == ("drained", ())


def test_the_jobs_on_a_node_are_named_once() -> None:
    facts = node_facts(node())
    labels = {"training.kubeflow.org/job-name": "mnist"}
    pods = [running("a", labels=labels), running("b", labels=labels), running("c")]
    (row,) = NodeRows().convert([facts], pods, "a")
    assert row.jobs == ("mnist", "c")
    (row,) = NodeRows().convert([facts], pods, "other")
    assert row.jobs == ("a/mnist", "a/c")


# ---------------------------------------------------------------------------------- a real cluster


def named(rows: list[Node], name: str) -> Node:
    return next(row for row in rows if row.name == name)


async def test_a_pod_takes_what_it_asked_for_from_its_node(session: KubernetesSession) -> None:
    first = session.cluster.nodes[0]
    before = named(await session.hyperpod.nodes(), first)
    made = pod("holder", session.cluster.image, {"nvidia.com/gpu": "3"}, nodeName=first)
    await create(session, made)
    rows = await until(session.hyperpod.nodes, lambda rows: "holder" in named(rows, first).jobs)
    after = named(rows, first)
    assert after.state == "up"
    assert after.accelerators == before.accelerators == 8
    assert before.accelerators_free is not None
    assert after.accelerators_free is not None
    gpu = next(one for one in after.resources if one.name == "gpu")
    assert gpu.total - gpu.used == gpu.free == after.accelerators_free <= 5
    assert after.cpus
    assert after.memory
    await kubectl(session, "delete", "pod", "holder", "--now")
    await until(session.hyperpod.nodes, lambda rows: "holder" not in named(rows, first).jobs)


async def test_a_node_that_is_being_prepared(session: KubernetesSession) -> None:
    name = f"extra-{uuid4().hex[:6]}"
    taint = {"key": "tests", "effect": "NoSchedule"}
    labels = {
        "node.kubernetes.io/instance-type": "ml.p5.48xlarge",
        "sagemaker.amazonaws.com/instance-group-name": "workers",
    }
    await create(
        session,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [taint], "unschedulable": True},
        },
    )
    try:
        row = named(await until(session.hyperpod.nodes, lambda rows: name in str(rows)), name)
        assert row.state in {"starting", "not-answering"}
        assert row.reason
        assert (row.instance_type, row.instance_group) == ("ml.p5.48xlarge", "workers")
    finally:
        await kubectl(session, "delete", "node", name)


@pytest.mark.full
async def test_who_may_see_nodes_and_not_all_pods_sees_totals_and_is_told_why(
    session: KubernetesSession, sessions: Sessions
) -> None:
    kubeconfig = session.cluster.user("nodes", session.namespace)
    name = f"nodes-{session.namespace}"
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    subject = {"kind": "ServiceAccount", "name": "nodes", "namespace": session.namespace}
    await create(
        session,
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "subjects": [subject],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        },
    )
    try:
        narrow = sessions(kubeconfig=kubeconfig)
        row = named(await narrow.hyperpod.nodes(), session.cluster.nodes[0])
        assert (row.accelerators, row.accelerators_free, row.cpus_free) == (8, None, None)
        answer = await narrow.hpj("nodes")
        assert answer.code == 0, answer.err
        assert "you do not have the permission to list pods in all namespaces" in answer.err
        line = await narrow.hpj("clusters", "--json")
        assert "you do not have the permission to list pods in all namespaces" in line.out
    finally:
        await kubectl(session, "delete", "clusterrolebinding,clusterrole", name)
