"""Amazon Managed Service for Prometheus: the workspace with a cluster's metrics, and range queries.

boto3 has no operation for queries: they are Prometheus' own API below the workspace's address, signed for the service ``aps``
(``QueryMetrics`` in AWS' user guide of the service). The configuration of HyperPod's observability add-on of EKS names its workspace, as
``ampWorkspace: {prometheusEndpoint, arn}`` (the Terraform modules of aws-samples/awsome-distributed-training).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hyperpod_jlab.aws.errors import AwsCall
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
    mask_credentials,
)
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.features.metrics.models import METRICS, TimeRange, TimeSeries

ADDON = "amazon-sagemaker-hyperpod-observability"
"""HyperPod's observability add-on of EKS."""

_URL = re.compile(r"(https?://[0-9A-Za-z.:-]+/workspaces/ws-[0-9A-Za-z-]+)(?:/\S*)?")
_ARN = re.compile(r"arn:(aws[a-z-]*):aps:([a-z0-9-]+):\d{12}:workspace/(ws-[0-9A-Za-z-]+)")
_REGION = re.compile(r"aps-workspaces[a-z-]*\.([a-z0-9-]+)\.")
_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_LOOPBACK = frozenset({"127.0.0.1", "localhost"})


@dataclass(frozen=True)
class Workspace:
    """A workspace.

    Attributes:
        url: Its URL, up to its id.
        region: The region for signing requests.
    """

    url: str
    region: str


@dataclass(frozen=True)
class Series:
    """One series of a response.

    Attributes:
        labels: Its labels.
        points: The start of each period (Unix seconds) and its value, in time order.
    """

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


def workspace_at(url: str, region: str) -> Workspace:
    """The workspace with a URL as AWS' console shows it; the part after its id is ignored.

    Args:
        url: The URL.
        region: Its region, if the URL does not contain it.

    Raises:
        InvalidInputError: It is not a workspace's URL, or not an AWS one: signed requests must not go elsewhere.
    """
    match = _URL.fullmatch(url.strip())
    address = urlsplit(match[1]) if match else None
    host_name = (address.hostname or "") if address else ""
    is_aws_host = address is not None and address.scheme == "https" and host_name.endswith(_AWS_HOSTS)
    if match is None or not (is_aws_host or host_name in _LOOPBACK):
        raise InvalidInputError(
            f"'{mask_credentials(url)[:200]}' is not the address of a workspace of Amazon Managed Service for Prometheus",
            hint="example: https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-0123abcd-...",
            detail={"field": "prometheus"},
        )
    region_match = _REGION.search(host_name)
    return Workspace(match[1], region_match[1] if region_match else region)


async def workspace_of_addon(aws: Aws, eks: str) -> Workspace | None:
    """The workspace that HyperPod's observability add-on of an EKS cluster writes to; None without the add-on, or if it names none.

    Raises:
        UnsupportedError: The add-on names something that is not an AWS workspace.
        HyperpodError: See `aws.errors`.
    """
    try:
        response = await aws.call("eks", "DescribeAddon", clusterName=eks, addonName=ADDON)
    except NotFoundError:
        return None
    workspace_setting = _configuration(response["addon"].get("configurationValues") or "").get("ampWorkspace")
    if not isinstance(workspace_setting, dict):
        return None
    region = await aws.region()
    if workspace_setting.get("prometheusEndpoint"):
        try:
            return workspace_at(str(workspace_setting["prometheusEndpoint"]), region)
        except InvalidInputError as error:
            raise UnsupportedError(f"the add-on {ADDON} of {eks}: {error.message}") from None
    arn = _ARN.fullmatch(str(workspace_setting.get("arn") or ""))
    if arn is None:
        return None
    suffix = ".cn" if arn[1] == "aws-cn" else ""
    host = f"aps-workspaces.{arn[2]}.amazonaws.com{suffix}"
    return Workspace(f"https://{host}/workspaces/{arn[3]}", arn[2])


async def query_range(aws: Aws, workspace: Workspace, expression: str, window: TimeRange) -> list[Series]:
    """The values of an expression, one per whole period of a time range; omits values that are not numbers.

    Args:
        aws: AWS.
        workspace: The workspace.
        expression: In PromQL; its value at the end of a period is the period's value.
        window: The time range; an incomplete period is omitted.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    call = AwsCall("aps", "QueryMetrics", workspace.region)
    periods = int((window.end - window.begin) // window.period)
    if periods < 1:
        return []
    query_form = {
        "query": expression,
        "start": str(window.begin + window.period),
        "end": str(window.begin + window.period * periods),
        "step": str(window.period),
    }
    response = await aws.post(call, f"{workspace.url}/api/v1/query_range", query_form)
    try:
        return [_series(series, window.period) for series in response["data"]["result"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnreachableError(
            f"the workspace {workspace.url} did not answer as Prometheus does", code="aws_failed", detail=call.detail
        ) from None


def _series(item: Mapping[str, Any], period: int) -> Series:
    values = ((float(moment) - period, float(text)) for moment, text in item["values"])
    labels = {str(name): str(value) for name, value in item["metric"].items()}
    return Series(labels, tuple(pair for pair in values if abs(pair[1]) < float("inf")))


def _configuration(text: str) -> dict[str, Any]:
    """An add-on's configuration: EKS accepts JSON and YAML; empty if it is neither."""
    try:
        document = json.loads(text or "{}")
    except ValueError:
        document = _yaml(text)
    return document if isinstance(document, dict) else {}


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


# --------------------------------------------------------------------------------------------------
# Our metrics in PromQL, for the exporters that HyperPod's two kinds of observability run.
#
# Names and labels are those of AWS' own Grafana dashboards and collectors (aws-samples/awsome-distributed-training,
# ``1.architectures/5.sagemaker-hyperpod/LifecycleScripts/base-config/observability``: ``dashboards/cluster.json``, whose uid is
# ``aws-sm-hp-observability-cluster-v1_0``, ``dashboards/task.json`` and ``otel_config``):
#
# - On EKS the DCGM exporter's label ``Hostname`` is the node's name (``hyperpod-i-...``), and ``pod`` and ``namespace`` are those of the pod that
# has the GPU. The EFA exporter's ``instance`` is the node's name; the node exporter's is ``ADDRESS:9100``, and ``kube_node_info`` of
# kube-state-metrics has name and address. ``kubelet_node_name`` carries the node's labels, HyperPod's health among them.
# - With Slurm the collector on each node sets ``instance`` to the host's name, by which Slurm calls the node, for all exporters.
# - Counters of EFA end with ``_total`` or not, by what wrote them (the dashboards have both).

_NAME = re.compile(r"[0-9A-Za-z._-]+")

_MIN_RATE_S = 120
"""Minimum window of a rate, in seconds: exporters are scraped every 15 to 60 seconds, and a rate needs two values."""


@dataclass(frozen=True)
class Expression:
    """A metric in PromQL.

    Attributes:
        text: Its value per node, with the placeholders ``$of`` (which series), ``$for`` (seconds of a period) and ``$rate`` (seconds of a rate).
        label: The label that selects series; in results, the node.
        whole: Whether it only exists for the whole cluster.
    """

    text: str
    label: str
    whole: bool = False

    def by_node(self, names: Iterable[str], period: int) -> str:
        """The value per node.

        Args:
            names: The nodes' names (see `is_name`).
            period: Seconds of a period.
        """
        selector = f'{self.label}=~"{_name_pattern(names)}"'
        text = self.text.replace("$of", selector).replace("$for", f"{period}s")
        return text.replace("$rate", f"{max(period, _MIN_RATE_S)}s")

    def overall(self, names: Iterable[str], period: int) -> str:
        """The mean over the nodes, or the value of the cluster."""
        text = self.by_node(names, period)
        return text if self.whole else f"avg({text})"


def is_name(text: str) -> bool:
    """Whether it is a valid node name; nothing else may be inserted into an expression."""
    return _NAME.fullmatch(text) is not None


def _name_pattern(names: Iterable[str]) -> str:
    return "|".join(map(_literal, names))


def _literal(name: str) -> str:
    """A name as a regular expression in a PromQL string.

    Raises:
        ValueError: It is not a valid node name.
    """
    if not is_name(name):
        raise ValueError(name)
    return name.replace(".", "[.]")


def _gpu(value: str, label: str) -> Expression:
    return Expression(f"avg by ({label}) ({value})", label)


def _gpus(label: str) -> dict[str, Expression]:
    """Metrics of the DCGM exporter; utilization is in percent, memory in MiB."""
    used_memory = "avg_over_time(DCGM_FI_DEV_FB_USED{$of}[$for])"
    free = "avg_over_time(DCGM_FI_DEV_FB_FREE{$of}[$for])"
    return {
        "gpu-utilization": _gpu("avg_over_time(DCGM_FI_DEV_GPU_UTIL{$of}[$for])", label),
        "gpu-memory": _gpu(f"100 * {used_memory} / ({used_memory} + {free})", label),
        "gpu-temperature": _gpu("avg_over_time(DCGM_FI_DEV_GPU_TEMP{$of}[$for])", label),
    }


def _efa(counter: str) -> Expression:
    """The rate of a counter of the EFA exporter, over all devices of a node."""
    name = f'__name__=~"node_amazonefa_{counter}(_total)?"'
    return Expression(f"sum by (instance) (rate({{{name},$of}}[$rate]))", "instance")


_EFA = {"efa-received": _efa("rx_bytes"), "efa-sent": _efa("tx_bytes"), "efa-dropped": _efa("rx_drops")}

_AVAILABLE = "avg by (instance) (avg_over_time(node_memory_MemAvailable_bytes{$of}[$for]))"
_MEMORY = "avg by (instance) (avg_over_time(node_memory_MemTotal_bytes{$of}[$for]))"
_HOST = {
    "cpu": '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle",$of}[$rate])))',
    "memory": f"100 * (1 - {_AVAILABLE} / {_MEMORY})",
}
"""Metrics of the node exporter, by its ``instance``."""


def _by_address(text: str) -> Expression:
    """A metric of the node exporter on EKS, whose instance is an address: joined with the node that has it."""
    addressed = f'label_replace({text.replace("$of", "")}, "internal_ip", "$1", "instance", "([^:]+)(:[0-9]+)?")'
    nodes = "max by (internal_ip, node) (last_over_time(kube_node_info{$of}[$rate]))"
    return Expression(f"max by (node) ({addressed} * on (internal_ip) group_left (node) {nodes})", "node")


def _health(state: str) -> Expression:
    """Whether a node has this HyperPod health label, in percent of the time."""
    labelled = f'kubelet_node_name{{sagemaker_amazonaws_com_node_health_status="{state}",$of}}'
    all_nodes = "kubelet_node_name{$of}"
    state_count = f"sum by (node) (count_over_time({labelled}[$for]))"
    count = f"sum by (node) (count_over_time({all_nodes}[$for]))"
    return Expression(f"100 * ({state_count} / {count} or 0 * {count})", "node")


EKS_NODE_METRICS = {
    **_gpus("Hostname"),
    **_EFA,
    **{name: _by_address(one) for name, one in _HOST.items()},
    "healthy": _health("Schedulable"),
    "deep-health-check": _health("Unschedulable"),
    "to-reboot": _health("UnschedulablePendingReboot"),
    "to-replace": _health("UnschedulablePendingReplacement"),
}
"""Metrics of each node of an EKS cluster, by Kubernetes node name."""

EKS_METRICS = {
    **EKS_NODE_METRICS,
    "nodes": Expression("count(last_over_time(kube_node_info{$of}[$rate]))", "node", whole=True),
}
"""Metrics of an EKS cluster."""

SLURM_NODE_METRICS = {**_gpus("instance"), **_EFA, **{name: Expression(one, "instance") for name, one in _HOST.items()}}
"""Metrics of each node of a Slurm cluster, by Slurm node name."""


def _slurm_expression(text: str) -> Expression:
    return Expression(f"max(sum by (instance) ({text}))", "instance", whole=True)


SLURM_METRICS = {
    **SLURM_NODE_METRICS,
    "nodes": Expression("count(last_over_time(node_uname_info{$of}[$rate]))", "instance", whole=True),
    "gpus-idle": _slurm_expression("last_over_time(slurm_gpus_idle{$of}[$rate])"),
    "jobs-running": _slurm_expression("last_over_time(slurm_queue_running{$of}[$rate])"),
    "jobs-waiting": _slurm_expression("last_over_time(slurm_queue_pending{$of}[$rate])"),
}
"""Metrics of a Slurm cluster; those of Slurm itself are of SckyzO/slurm_exporter, which runs on the controller."""

# --------------------------------------------------------------------------------------------------
# Metrics of HyperPod clusters and nodes from a workspace of Amazon Managed Service for
# Prometheus.

_CONCURRENCY = 4
"""Concurrent queries."""


def node_name(cluster: HyperpodCluster, instance: Instance) -> str | None:
    """An instance's name in the workspace: the Kubernetes or Slurm node name; None if it has no name yet."""
    if cluster.eks_arn is not None:
        return f"hyperpod-{instance.name}"
    return instance.host.partition(".")[0] if instance.host else None


class PrometheusMetrics:
    """Metrics of one cluster.

    Args:
        aws: AWS.
        workspace: The workspace with the metrics.
        cluster: The cluster: a workspace may have several, so only series of its own nodes count.
    """

    def __init__(self, aws: Aws, workspace: Workspace, cluster: HyperpodCluster) -> None:
        self._aws = aws
        self._workspace = workspace
        on_eks = cluster.eks_arn is not None
        self._cluster_metrics = EKS_METRICS if on_eks else SLURM_METRICS
        self._node_metrics = EKS_NODE_METRICS if on_eks else SLURM_NODE_METRICS

    async def read_cluster(self, names: Sequence[str], window: TimeRange) -> list[TimeSeries]:
        """The time series of each metric, including those without a value.

        Args:
            names: The names of the cluster's nodes (see `node_name`).
            window: The time range.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        valid_names = list(filter(is_name, names))
        if not valid_names:
            return [TimeSeries(METRICS[name], ()) for name in self._cluster_metrics]
        queries = {
            name: expression.overall(valid_names, window.period) for name, expression in self._cluster_metrics.items()
        }
        results = await self._ask(queries, window)
        return [TimeSeries(METRICS[name], series[0].points if series else ()) for name, series in results.items()]

    async def read_nodes(
        self, names: Sequence[str], window: TimeRange, metrics: Collection[str] | None = None
    ) -> dict[str, list[TimeSeries]]:
        """The time series of metrics on each of several nodes, by node name, including those without a value.

        Args:
            names: The nodes' names (see `node_name`).
            window: The time range.
            metrics: Which metrics; default: all node metrics.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        expressions = {
            name: expression for name, expression in self._node_metrics.items() if metrics is None or name in metrics
        }
        valid_names = list(filter(is_name, names))
        queries = {
            name: expression.by_node(valid_names, window.period)
            for name, expression in expressions.items()
            if valid_names
        }
        results = await self._ask(queries, window)
        return {node: list(_node_series(node, expressions, results)) for node in names}

    async def _ask(self, queries: Mapping[str, str], window: TimeRange) -> dict[str, list[Series]]:
        semaphore = asyncio.Semaphore(_CONCURRENCY)

        async def ask(expression: str) -> list[Series]:
            async with semaphore:
                return await query_range(self._aws, self._workspace, expression, window)

        responses = await asyncio.gather(*map(ask, queries.values()))
        return dict(zip(queries, responses, strict=True))


def _node_series(
    node: str, expressions: Mapping[str, Expression], results: Mapping[str, Iterable[Series]]
) -> Iterable[TimeSeries]:
    for name, expression in expressions.items():
        node_series = (series for series in results.get(name, ()) if series.labels.get(expression.label) == node)
        first = next(node_series, None)
        yield TimeSeries(METRICS[name], first.points if first else ())
