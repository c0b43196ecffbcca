"""Logs and measurements of the example's clusters: some days up to now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from testbed.aws.state import Account, Cluster, Node
from testbed.aws.telemetry import cluster_log_group, milliseconds

_FAULT = (
    '{"level":"info","msg":"NPD caught event: %v","details: ":{"severity":"warn","reason":"XidHardwareFailure",'
    '"message":"Node condition NvidiaErrorReboot is now: True"},"HealthMonitoringAgentDetectionEvent":"HealthEvent"}'
)
_LIFECYCLE = (
    "Entering provisioning_step 1: mounting FSx for Lustre",
    "mounted fs-0123456789abcdef0 at /fsx",
    "Entering provisioning_step 2: starting slurmd",
    "[INFO]: Success: All provisioning scripts completed",
)


def add_telemetry(account: Account, region: str, *, hours: int = 24) -> None:
    """Give the clusters of a region what their nodes would have written and measured in the last hours, once a minute."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    minutes = [now - timedelta(minutes=ago) for ago in range(hours * 60, 0, -1)]
    for cluster in account.clusters.get(region, []):
        _write_logs(account, region, cluster, now)
        if cluster.orchestrator and "Eks" in cluster.orchestrator:
            _measure_eks(account, region, cluster, minutes)
        elif cluster.orchestrator:
            _measure_slurm(account, region, cluster, minutes)


def _write_logs(account: Account, region: str, cluster: Cluster, now: datetime) -> None:
    group = cluster_log_group(cluster.name, cluster.arn)
    for number, node in enumerate(cluster.nodes):
        begun = milliseconds(now - timedelta(hours=2, minutes=number))
        lines = [(begun + at * 700, text) for at, text in enumerate(_LIFECYCLE)]
        stream = f"{node.group}/{node.instance_id}"
        account.telemetry.write(region, group, f"LifecycleConfig/{stream}", lines)
        if node.status == "Failure":
            found = [(milliseconds(now - timedelta(minutes=5)), _FAULT)]
            account.telemetry.write(region, group, f"SagemakerHealthMonitoringAgent/{stream}", found)


def _measure_eks(account: Account, region: str, cluster: Cluster, minutes: list[datetime]) -> None:
    assert cluster.orchestrator is not None
    eks = cluster.orchestrator["Eks"]["ClusterArn"].rpartition("/")[2]
    on = {"ClusterName": eks}
    for number, node in enumerate(cluster.nodes):
        name = f"hyperpod-{node.instance_id}"
        dimensions = {**on, "InstanceId": node.instance_id, "NodeName": name}
        for metric, values in _of_node(node, number, minutes):
            for where in (on, dimensions):
                account.telemetry.measure(region, "ContainerInsights", metric, where, values)
    counts = [(minute, float(len(cluster.nodes))) for minute in minutes]
    account.telemetry.measure(region, "ContainerInsights", "cluster_node_count", on, counts)


def _of_node(node: Node, number: int, minutes: list[datetime]) -> Iterator[tuple[str, list[tuple[datetime, float]]]]:
    well = node.status == "Running"
    curves: Mapping[str, tuple[float, float]] = {
        "node_gpu_utilization": (60, 35),
        "node_gpu_memory_utilization": (70, 5),
        "node_gpu_temperature": (55, 12),
        "node_efa_rx_bytes": (8e9, 7e9),
        "node_efa_tx_bytes": (8e9, 6e9),
        "node_efa_rx_dropped": (0, 0),
        "node_cpu_utilization": (20, 8),
        "node_memory_utilization": (40, 3),
        "hyperpod_node_health_status_schedulable": (float(well), 0),
        "hyperpod_node_health_status_unschedulable": (0, 0),
        "hyperpod_node_health_status_unschedulable_pending_reboot": (0, 0),
        "hyperpod_node_health_status_unschedulable_pending_replacement": (float(not well), 0),
    }
    for metric, (middle, swing) in curves.items():
        yield (metric, [(minute, middle + swing * math.sin(at / 7 + number)) for at, minute in enumerate(minutes)])


def _measure_slurm(account: Account, region: str, cluster: Cluster, minutes: list[datetime]) -> None:
    on = {"ClusterId": cluster.arn.rpartition("/")[2]}
    values = {
        "node_gpu_utilization": 72.0,
        "node_gpu_memory_utilization": 64.0,
        "node_cpu_utilization": 18.0,
        "node_memory_utilization": 33.0,
        "cluster_node_count": 4.0,
        "cluster_idle_node_count": 1.0,
        "cluster_failed_node_count": 1.0,
        "cluster_idle_gpu_count": 8.0,
        "cluster_running_task_count": 3.0,
        "cluster_pending_task_count": 2.0,
    }
    for metric, value in values.items():
        swing = 0 if metric.endswith("_count") and "task" not in metric else 2
        measured = [(minute, value + at // 20 % 2 * swing) for at, minute in enumerate(minutes)]
        account.telemetry.measure(region, "/aws/sagemaker/Clusters", metric, on, measured)
