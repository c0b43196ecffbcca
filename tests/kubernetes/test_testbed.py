"""The testbed itself: what the other tests take for granted."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import SCRIPT, KubernetesTestbed, torch_environment

pytestmark = [pytest.mark.testbed, pytest.mark.full]


def until(holds: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "gave up waiting"
        time.sleep(0.2)


def pod(cluster: KubernetesTestbed, name: str, script: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": cluster.image, "command": ["sh", "-c", script]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **more}
    spec["containers"] = [{**container, **spec.pop("container", {})}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def phase(cluster: KubernetesTestbed, name: str, namespace: str) -> str:
    return str(cluster.get("pod", name, namespace)["status"]["phase"])


def ends_well(cluster: KubernetesTestbed, name: str, namespace: str) -> None:
    until(lambda: phase(cluster, name, namespace) in {"Succeeded", "Failed"}, 110)
    assert phase(cluster, name, namespace) == "Succeeded"


def pytorch_job(cluster: KubernetesTestbed, name: str, script: str) -> dict[str, Any]:
    container = {"name": "pytorch", "image": cluster.image, "command": ["sh", "-c", script]}
    replica = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}},
    }


# The master must be there until the worker has found it by its name: the name goes with the pod.
MEET = """
import os, socket, time

address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    socket.create_server(("", address[1])).accept()
else:
    for _ in range(100):
        try:
            socket.create_connection(address, timeout=5)
            break
        except OSError:
            time.sleep(0.2)
    else:
        raise SystemExit("no master")
print(os.environ["RANK"], os.environ["WORLD_SIZE"])
"""


def test_a_pytorch_job_of_two_pods_succeeds(kubernetes_cluster: KubernetesTestbed, namespace: str):
    job = pytorch_job(kubernetes_cluster, "two", f"exec python3 -c '{MEET}'")
    kubernetes_cluster.create(job, namespace=namespace)
    until(lambda: kubernetes_cluster.conditions("pytorchjob", "two", namespace).get("Succeeded") == "True")
    until(lambda: phase(kubernetes_cluster, "two-worker-0", namespace) == "Succeeded")
    logs = [kubernetes_cluster.kubectl("logs", f"two-{pod}", namespace=namespace) for pod in ("master-0", "worker-0")]
    assert logs == ["0 2\n", "1 2\n"]


@pytest.mark.parametrize("certificate", [False, True], ids=["token", "certificate"])
def test_a_user_may_work_in_one_namespace_only(
    kubernetes_cluster: KubernetesTestbed, namespace: str, certificate: bool
):
    kubeconfig = kubernetes_cluster.user("alice", namespace, certificate=certificate)

    def may(*words: str) -> bool:
        return kubernetes_cluster.run("auth", "can-i", *words, kubeconfig=kubeconfig).returncode == 0

    assert may("create", "pytorchjobs.kubeflow.org")
    assert may("get", "pods", "--subresource=log")
    assert not may("create", "pods")
    assert not may("list", "nodes")
    assert not may("create", "pytorchjobs.kubeflow.org", "--namespace", "default")
    kubeconfig.unlink()


def test_a_users_rules_can_be_given(kubernetes_cluster: KubernetesTestbed, namespace: str):
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    kubeconfig = kubernetes_cluster.user("bob", namespace, rules=rules)
    kubernetes_cluster.kubectl("get", "configmaps", kubeconfig=kubeconfig)
    refused = kubernetes_cluster.run("get", "pods", kubeconfig=kubeconfig)
    assert "Forbidden" in refused.stderr
    kubeconfig.unlink()


def test_a_pod_sees_the_partition_and_this_machine_what_it_writes(kubernetes: KubernetesTestbed, namespace: str):
    assert kubernetes.partition is not None
    (kubernetes.partition / "question").write_text("here")
    kubernetes.claim(namespace)
    reader = pod(
        kubernetes,
        "reader",
        "cat /fsx/team/question > /fsx/team/answer",
        volumes=[{"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx"}}],
        container={"volumeMounts": [{"name": "fsx", "mountPath": "/fsx/team"}]},
    )
    kubernetes.create(reader, namespace=namespace)
    until(lambda: phase(kubernetes, "reader", namespace) == "Succeeded")
    assert (kubernetes.partition / "answer").read_text() == "here"


REDUCE = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ours = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(ours)
print("sum", ours.item(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.timeout(900)
def test_torch_reduces_over_two_pods_on_two_nodes(kubernetes: KubernetesTestbed, namespace: str):
    assert kubernetes.partition is not None
    torch = str(torch_environment())
    (kubernetes.partition / "reduce.py").write_text(REDUCE)
    kubernetes.claim(namespace)
    job = pytorch_job(kubernetes, "reduce", f"exec {torch}/bin/python /fsx/team/reduce.py")
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {"labels": {"job": "reduce"}}
    template["spec"]["volumes"] = [
        {"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx"}},
        {"name": "torch", "hostPath": {"path": torch}},
    ]
    template["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "fsx", "mountPath": "/fsx/team"},
        {"name": "torch", "mountPath": torch, "readOnly": True},
    ]
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"job": "reduce"}}}
    template["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    kubernetes.create(job, namespace=namespace)
    for name in ("reduce-master-0", "reduce-worker-0"):
        ends_well(kubernetes, name, namespace)
        assert kubernetes.kubectl("logs", name, namespace=namespace) == "sum 3.0 of 2\n"
    assert nodes_of(kubernetes, namespace) == {"node1", "node2"}


def nodes_of(cluster: KubernetesTestbed, namespace: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in cluster.get("pods", namespace=namespace)["items"]}


def test_nodes_have_as_many_gpus_as_they_say(kubernetes: KubernetesTestbed, namespace: str):
    def wanting(name: str, gpus: int) -> dict[str, Any]:
        limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
        return pod(kubernetes, name, "true", container={"resources": limits})

    kubernetes.create(wanting("eight", 8), wanting("nine", 9), namespace=namespace)
    until(lambda: phase(kubernetes, "eight", namespace) == "Succeeded")
    assert phase(kubernetes, "nine", namespace) == "Pending"


def test_a_killed_api_server_comes_back_at_the_same_address(kubernetes: KubernetesTestbed):
    kubernetes.component_kill("control", "kube-apiserver")
    assert kubernetes.run("get", "namespaces").returncode != 0
    kubernetes.component_start("control", "kube-apiserver")
    until(lambda: kubernetes.run("get", "namespaces").returncode == 0)


def test_a_hanging_api_server_answers_late(kubernetes: KubernetesTestbed):
    kubernetes.component_hang("control", "kube-apiserver")
    hanging = kubernetes.run("get", "--raw", "/version", "--request-timeout=2s")
    kubernetes.component_resume("control", "kube-apiserver")
    assert hanging.returncode != 0
    until(lambda: kubernetes.run("get", "--raw", "/version").returncode == 0)


def test_a_killed_node_comes_back_with_its_gpus(kubernetes: KubernetesTestbed):
    kubernetes.node_kill("node2")
    assert "node2 not running" in _status(kubernetes)
    kubernetes.node_start("node2")
    node = kubernetes.get("node", "node2")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert kubernetes.conditions("node", "node2")["Ready"] == "True"


def _status(cluster: KubernetesTestbed) -> str:
    assert cluster.folder is not None
    return subprocess.run([SCRIPT, "status", cluster.folder], capture_output=True, text=True).stdout


def marked(folder: Path) -> list[str]:
    """The processes on this machine that say that they are of that testbed."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = environ.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"KUBERNETES_TESTBED={folder}".encode() in words:
            found.append(environ.parent.name)
    return found


def test_what_a_testbed_leaves_is_nothing_and_nobody_else_is_hurt(start_kubernetes):
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeper) as bystander:
        try:
            with start_kubernetes(nodes=1, parts=()) as cluster:
                groups = set(Path("/sys/fs/cgroup").glob("*/testbed-*"))
                assert marked(cluster.folder)
            assert bystander.poll() is None
        finally:
            bystander.kill()
    assert not cluster.folder.exists()
    assert not marked(cluster.folder)
    assert len(set(Path("/sys/fs/cgroup").glob("*/testbed-*"))) < len(groups)


def test_a_testbed_ends_with_its_owner(start_kubernetes):
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeper) as owner, start_kubernetes("--owner", str(owner.pid), nodes=1, parts=()) as cluster:
        owner.kill()
        owner.wait()
        until(lambda: not cluster.folder.exists(), 30)
        assert not marked(cluster.folder)
