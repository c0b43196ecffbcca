"""Our metrics in PromQL, for the exporters that HyperPod's two kinds of observability run.

Names and labels are those of AWS' own Grafana dashboards and collectors (aws-samples/awsome-distributed-training,
``1.architectures/5.sagemaker-hyperpod/LifecycleScripts/base-config/observability``: ``dashboards/cluster.json``, whose uid is
``aws-sm-hp-observability-cluster-v1_0``, ``dashboards/task.json`` and ``otel_config``):

- On EKS the DCGM exporter's label ``Hostname`` is the node's name (``hyperpod-i-...``), and ``pod`` and ``namespace`` are those of the pod that
  has the GPU. The EFA exporter's ``instance`` is the node's name; the node exporter's is ``ADDRESS:9100``, and ``kube_node_info`` of
  kube-state-metrics has name and address. ``kubelet_node_name`` carries the node's labels, HyperPod's health among them.
- With Slurm the collector on each node sets ``instance`` to the host's name, by which Slurm calls the node, for all exporters.
- Counters of EFA end with ``_total`` or not, by what wrote them (the dashboards have both).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r"[0-9A-Za-z._-]+")

_LEAST_RATE = 120
"""Seconds that a rate is taken over at the least: exporters are read each 15 to 60 seconds, and a rate needs two values."""


@dataclass(frozen=True)
class Expression:
    """A metric in PromQL.

    Attributes:
        text: Its value for each node, with the places ``$of`` (which series), ``$for`` (seconds of a period) and ``$rate`` (seconds of a rate).
        label: The label that says which series; of each result, which node it is.
        whole: Whether it is of the whole cluster only.
    """

    text: str
    label: str
    whole: bool = False

    def by_node(self, names: Iterable[str], period: int, pods: str | None = None) -> str:
        """The value for each node.

        Args:
            names: The nodes' names (see `is_name`).
            period: Seconds of a period.
            pods: Only GPUs of pods whose name begins so.
        """
        of = f'{self.label}=~"{_any_of(names)}"'
        if pods is not None:
            of += f',pod=~"{_literal(pods)}(-.*)?"'
        text = self.text.replace("$of", of).replace("$for", f"{period}s")
        return text.replace("$rate", f"{max(period, _LEAST_RATE)}s")

    def of_all(self, names: Iterable[str], period: int) -> str:
        """The mean over the nodes, or the value of the cluster."""
        text = self.by_node(names, period)
        return text if self.whole else f"avg({text})"


def is_name(text: str) -> bool:
    """Whether a node can be called so; nothing else may come into an expression."""
    return _NAME.fullmatch(text) is not None


def _any_of(names: Iterable[str]) -> str:
    return "|".join(map(_literal, names))


def _literal(name: str) -> str:
    """A name as a regular expression in a string of PromQL.

    Raises:
        ValueError: It is none.
    """
    if not is_name(name):
        raise ValueError(name)
    return name.replace(".", "[.]")


def _gpu(value: str, label: str) -> Expression:
    return Expression(f"avg by ({label}) ({value})", label)


def _gpus(label: str) -> dict[str, Expression]:
    """Metrics of the DCGM exporter; use is in percent, memory in MiB."""
    used = "avg_over_time(DCGM_FI_DEV_FB_USED{$of}[$for])"
    free = "avg_over_time(DCGM_FI_DEV_FB_FREE{$of}[$for])"
    return {
        "gpu-utilization": _gpu("avg_over_time(DCGM_FI_DEV_GPU_UTIL{$of}[$for])", label),
        "gpu-memory": _gpu(f"100 * {used} / ({used} + {free})", label),
        "gpu-temperature": _gpu("avg_over_time(DCGM_FI_DEV_GPU_TEMP{$of}[$for])", label),
    }


def _efa(counter: str) -> Expression:
    """The rate of a counter of the EFA exporter, of all devices of a node."""
    name = f'__name__=~"node_amazonefa_{counter}(_total)?"'
    return Expression(f"sum by (instance) (rate({{{name},$of}}[$rate]))", "instance")


_EFA = {
    "efa-received": _efa("rx_bytes"),
    "efa-sent": _efa("tx_bytes"),
    "efa-dropped": _efa("rx_drops"),
}

_AVAILABLE = "avg by (instance) (avg_over_time(node_memory_MemAvailable_bytes{$of}[$for]))"
_MEMORY = "avg by (instance) (avg_over_time(node_memory_MemTotal_bytes{$of}[$for]))"
_HOST = {
    "cpu": '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle",$of}[$rate])))',
    "memory": f"100 * (1 - {_AVAILABLE} / {_MEMORY})",
}
"""Metrics of the node exporter, by its ``instance``."""


def _at_address(text: str) -> Expression:
    """A metric of the node exporter on EKS, whose instance is an address: joined with the node that has it."""
    addressed = (
        f'label_replace({text.replace("$of", "")}, "internal_ip", "$1", "instance", '
        '"([^:]+)(:[0-9]+)?")'
    )
    nodes = "max by (internal_ip, node) (last_over_time(kube_node_info{$of}[$rate]))"
    return Expression(
        f"max by (node) ({addressed} * on (internal_ip) group_left (node) {nodes})", "node"
    )


def _health(word: str) -> Expression:
    """Whether HyperPod labels a node so, in percent of the time."""
    labelled = f'kubelet_node_name{{sagemaker_amazonaws_com_node_health_status="{word}",$of}}'
    every = "kubelet_node_name{$of}"
    so = f"sum by (node) (count_over_time({labelled}[$for]))"
    of = f"sum by (node) (count_over_time({every}[$for]))"
    return Expression(f"100 * ({so} / {of} or 0 * {of})", "node")


PER_NODE_ON_EKS = {
    **_gpus("Hostname"),
    **_EFA,
    **{name: _at_address(one) for name, one in _HOST.items()},
    "healthy": _health("Schedulable"),
    "deep-health-check": _health("Unschedulable"),
    "to-reboot": _health("UnschedulablePendingReboot"),
    "to-replace": _health("UnschedulablePendingReplacement"),
}
"""Metrics of each node of an EKS cluster; the nodes are called by their names in Kubernetes."""

OF_EKS = {
    **PER_NODE_ON_EKS,
    "nodes": Expression("count(last_over_time(kube_node_info{$of}[$rate]))", "node", whole=True),
}
"""Metrics of an EKS cluster."""

PER_NODE_WITH_SLURM = {
    **_gpus("instance"),
    **_EFA,
    **{name: Expression(one, "instance") for name, one in _HOST.items()},
}
"""Metrics of each node of a cluster with Slurm; the nodes are called as Slurm calls them."""


def _of_slurm(text: str) -> Expression:
    return Expression(f"max(sum by (instance) ({text}))", "instance", whole=True)


OF_SLURM = {
    **PER_NODE_WITH_SLURM,
    "nodes": Expression(
        "count(last_over_time(node_uname_info{$of}[$rate]))", "instance", whole=True
    ),
    "gpus-idle": _of_slurm("last_over_time(slurm_gpus_idle{$of}[$rate])"),
    "jobs-running": _of_slurm("last_over_time(slurm_queue_running{$of}[$rate])"),
    "jobs-waiting": _of_slurm("last_over_time(slurm_queue_pending{$of}[$rate])"),
}
"""Metrics of a cluster with Slurm; those of Slurm itself are of SckyzO/slurm_exporter, which runs on the controller."""

OF_GPUS = frozenset(_gpus(""))
"""Metrics that can be had of a run's own pods."""
