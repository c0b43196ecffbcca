"""What the exporters of HyperPod's observability tell of an example's clusters: names and labels as AWS' dashboards and collectors have them.

See `hyperpod_jlab.features.metrics.prometheus` for where those stand.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence

from testbed.aws.state import Account, Cluster, Node
from testbed.prometheus import Scraped

ADDON = "amazon-sagemaker-hyperpod-observability"
WORKSPACE = "ws-0b1c2d3e-4f50-4a6b-8c7d-112233445566"
STEP = 30
"""Seconds between two scrapes, the add-on's default."""

GPUS, EFA_DEVICES, CPUS = 2, 2, 2

_HEALTH = {"Running": "Schedulable", "Failure": "UnschedulablePendingReplacement"}

Curve = Callable[[int, int], float]
"""The use of GPUs in percent, by a node's number in its cluster and the number of the scrape."""


def waves(node: int, at: int) -> float:
    """Use that goes up and down, each node a bit later than the one before."""
    return 60 + 35 * math.sin(at / 14 + node)


def scrapes(hours: float, until: float | None = None) -> Scraped:
    """The times of some hours up to now (or Unix seconds)."""
    end = math.floor((until or time.time()) / STEP) * STEP
    count = int(hours * 3600 / STEP)
    return Scraped([end - STEP * ago for ago in range(count - 1, -1, -1)])


def observe_eks(
    scraped: Scraped, cluster: Cluster, use: Curve = waves, pods: Mapping[str, Sequence[str | None]] | None = None
) -> None:
    """Add what a cluster on EKS tells.

    Args:
        scraped: Where to.
        cluster: The cluster.
        use: Use of GPUs.
        pods: The pod that has each GPU, by instance id; GPUs of other nodes have none.
    """
    for number, node in enumerate(cluster.nodes):
        name = f"hyperpod-{node.instance_id}"
        for gpu in range(GPUS):
            labels = {"Hostname": name, "gpu": str(gpu), "instance": f"{node.address}:9400"}
            pod = (pods or {}).get(node.instance_id, [None] * GPUS)[gpu]
            if pod is not None:
                labels |= {"pod": pod, "namespace": "default"}
            _gpu(scraped, labels, number, gpu, use)
        _efa(scraped, name, number, "_total")
        _host(scraped, f"{node.address}:9100")
        whole = [1.0] * len(scraped.times)
        scraped.gauge("kube_node_info", {"node": name, "internal_ip": node.address}, whole)
        health = {"node": name, "sagemaker_amazonaws_com_node_health_status": _HEALTH.get(node.status, "Unschedulable")}
        scraped.gauge("kubelet_node_name", health, whole)


def observe_slurm(scraped: Scraped, cluster: Cluster, use: Curve = waves) -> None:
    """Add what a cluster with Slurm tells; its first instance group has the controller."""
    controllers = [node for node in cluster.nodes if node.group == cluster.groups[0].name]
    for node in controllers:
        _slurm(scraped, host_of(node))
    for number, node in enumerate(node for node in cluster.nodes if node not in controllers):
        name = host_of(node)
        for gpu in range(GPUS):
            _gpu(scraped, {"instance": name, "gpu": str(gpu)}, number, gpu, use)
        _efa(scraped, name, number, "")
        _host(scraped, name)
        scraped.gauge("node_uname_info", {"instance": name}, [1.0] * len(scraped.times))


def host_of(node: Node) -> str:
    """What a node's host calls itself, which is Slurm's name for it."""
    return f"ip-{node.address.replace('.', '-')}"


def install_addon(account: Account, region: str, eks: str, endpoint: str, prometheus: str) -> str:
    """Give an EKS cluster the add-on, whose workspace is a Prometheus; returns the workspace's address.

    Args:
        account: The account.
        region: Its region.
        eks: The EKS cluster.
        endpoint: Address of the AWS API.
        prometheus: Address of the Prometheus.
    """
    address = add_workspace(account, region, endpoint, prometheus)
    arn = f"arn:{account.partition}:aps:{region}:{account.account_id}:workspace/{WORKSPACE}"
    values = {"ampWorkspace": {"prometheusEndpoint": f"{address}/", "arn": arn}}
    account.addons[region, eks, ADDON] = json.dumps(values)
    return address


def add_workspace(account: Account, region: str, endpoint: str, prometheus: str) -> str:
    """Add a workspace; returns its address."""
    account.workspaces[region, WORKSPACE] = prometheus
    return f"{endpoint}/workspaces/{WORKSPACE}"


def _gpu(scraped: Scraped, labels: Mapping[str, str], node: int, gpu: int, use: Curve) -> None:
    count = range(len(scraped.times))
    scraped.gauge("DCGM_FI_DEV_GPU_UTIL", labels, (use(node, at) for at in count))
    scraped.gauge("DCGM_FI_DEV_FB_USED", labels, (20_000.0 + 20_000 * gpu for _ in count))
    scraped.gauge("DCGM_FI_DEV_FB_FREE", labels, (60_000.0 - 20_000 * gpu for _ in count))
    scraped.gauge("DCGM_FI_DEV_GPU_TEMP", labels, (40.0 + 10 * gpu + node for _ in count))


def _efa(scraped: Scraped, instance: str, node: int, ending: str) -> None:
    for device in range(EFA_DEVICES):
        labels = {"instance": instance, "device": f"rdmap{device}s27", "port": "1"}
        scraped.counter(f"node_amazonefa_rx_bytes{ending}", labels, 1e9 * (node + 1))
        scraped.counter(f"node_amazonefa_tx_bytes{ending}", labels, 5e8 * (node + 1))
        scraped.counter(f"node_amazonefa_rx_drops{ending}", labels, 0)


def _host(scraped: Scraped, instance: str) -> None:
    for cpu in range(CPUS):
        for mode, share in (("idle", 0.75), ("user", 0.25)):
            labels = {"instance": instance, "cpu": str(cpu), "mode": mode}
            scraped.counter("node_cpu_seconds_total", labels, share)
    count = len(scraped.times)
    scraped.gauge("node_memory_MemTotal_bytes", {"instance": instance}, [8e9] * count)
    scraped.gauge("node_memory_MemAvailable_bytes", {"instance": instance}, [6e9] * count)


def _slurm(scraped: Scraped, instance: str) -> None:
    count, on = len(scraped.times), {"instance": instance}
    scraped.gauge("slurm_gpus_idle", on, [3.0] * count)
    for user, waiting in (("alice", 2.0), ("bob", 1.0)):
        labels = {**on, "user": user, "partition": "gpu"}
        scraped.gauge("slurm_queue_running", labels, [2.0] * count)
        scraped.gauge("slurm_queue_pending", {**labels, "reason": "Resources"}, [waiting] * count)
