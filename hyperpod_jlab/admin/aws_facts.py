"""``hpj doctor --aws``: what this project assumes about AWS and could not try, checked on a real account. Nothing is changed.

docs/unverified.md lists all of these facts, also those that no request shows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances, node_target
from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, ok, unknown
from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.features.metrics import aws as metrics
from hyperpod_jlab.features.metrics.models import TimeRange
from hyperpod_jlab.features.metrics.prometheus import ADDON, query_range, workspace_of_addon
from hyperpod_jlab.features.node_logs.aws import NODE_STREAM, list_logs

_MAX_CLUSTERS = 10
_MAX_NODES = 3
"""Nodes of each cluster to ask for, one by one."""
_STEP_S = 60.0
_GPU_METRIC_MINUTES = 15


@dataclass
class _Account:
    """The clusters of the account and region, described once."""

    aws: Aws = field(default_factory=Aws)
    _clusters: list[HyperpodCluster] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def clusters(self) -> list[HyperpodCluster]:
        """Up to ten clusters.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        async with self._lock:
            if self._clusters is None:
                listed = [one async for page in list_clusters(self.aws) for one in page]
                found = [await describe_cluster(self.aws, one) for one in listed[:_MAX_CLUSTERS]]
                self._clusters = found
        return self._clusters

    async def running_nodes(self, cluster: HyperpodCluster) -> list[Instance]:
        """Some running nodes of a cluster."""
        pages = list_instances(self.aws, cluster.name)
        nodes = [node async for page in pages for node in page if node.status == "Running"]
        return nodes[:_MAX_NODES]


_Look = Callable[[_Account], Awaitable[CheckResult]]


def steps() -> list[CheckStep]:
    """The checks, in the order of docs/unverified.md."""
    account = _Account()

    def step(key: str, title: str, look: _Look, if_wrong: str) -> CheckStep:
        async def check() -> CheckResult:
            result = await look(account)
            return fail(result.evidence, if_wrong, "admin") if result.level == "fail" else result

        return CheckStep(key, title, "facts", check, seconds=_STEP_S)

    return [
        step(
            "create-profile-event",
            "events of new profiles",
            _event_check("CreateUserProfile", ("domainId", "userProfileName")),
            "run hpj admin apply yourself after you create a profile",
        ),
        step(
            "create-space-event",
            "events of new spaces",
            _event_check("CreateSpace", ("domainId", "spaceName")),
            "run hpj admin apply yourself after you create a shared space",
        ),
        step(
            "node-target",
            "names of nodes in Systems Manager",
            _check_node_targets,
            "hpj terminal cannot open a terminal on a node; use ssh or srun",
        ),
        step(
            "ec2-knows-types",
            "instance types in EC2",
            _check_instance_types,
            "details of that type come from the package's own table, or are unknown",
        ),
        step(
            "node-log-names",
            "names of node logs",
            _check_log_names,
            "hpj node-logs finds no logs; read them in the CloudWatch console",
        ),
        step(
            "slurm-metrics",
            "metrics of Slurm clusters",
            _check_slurm_metrics,
            "configure a Prometheus workspace to see metrics of Slurm clusters",
        ),
        step(
            "eks-node-metrics",
            "node names in Container Insights",
            _check_eks_metrics,
            "hpj metrics --by-node shows no nodes of EKS clusters",
        ),
        step(
            "observability-labels",
            "labels of the add-on's GPU metrics",
            _check_gpu_labels,
            "hpj metrics shows no GPUs of clusters with the add-on",
        ),
        step(
            "addon-right",
            "permission to describe the add-on",
            _check_addon_permission,
            "grant eks:DescribeAddon on addon/CLUSTER/*, and if that is not enough, on cluster/CLUSTER",
        ),
    ]


def _event_check(name: str, members: Sequence[str]) -> _Look:
    """A check that CloudTrail's records of a call have these members of the request."""

    async def look(account: _Account) -> CheckResult:
        filters = [{"AttributeKey": "EventName", "AttributeValue": name}]
        answer = await account.aws.call("cloudtrail", "LookupEvents", LookupAttributes=filters, MaxResults=20)
        records = [json.loads(event["CloudTrailEvent"]) for event in answer.get("Events") or ()]
        requests = [
            record.get("requestParameters") or {}
            for record in records
            if not record.get("errorCode") and record.get("eventSource") == "sagemaker.amazonaws.com"
        ]
        for request in requests:
            missing = [member for member in members if not isinstance(request.get(member), str)]
            if missing:
                has = ", ".join(sorted(request)) or "nothing"
                return fail(f"a record has no requestParameters.{missing[0]}; it has {has}")
        if not requests:
            return unknown(f"CloudTrail has no {name} of the last 90 days in this region")
        return ok(f"{len(requests)} {'record has' if len(requests) == 1 else 'records have'} them")

    return look


async def _check_node_targets(account: _Account) -> CheckResult:
    asked = connected = 0
    for cluster in await account.clusters():
        for node in await account.running_nodes(cluster):
            target = node_target(cluster.arn, node)
            answer = await account.aws.call("ssm", "GetConnectionStatus", Target=target)
            asked += 1
            connected += str(answer["Status"]).lower() == "connected"
    if not asked:
        return unknown("no cluster here has a running node")
    if not connected:
        return fail(f"none of {asked} nodes is connected under its name")
    return ok(f"{connected} of {asked} nodes are connected under their names")


async def _check_instance_types(account: _Account) -> CheckResult:
    types = {
        group.instance_type.removeprefix("ml.")
        for cluster in await account.clusters()
        for group in cluster.groups or ()
        if group.instance_type
    }
    if not types:
        return unknown("no cluster here has an instance group")
    filters = [{"Name": "instance-type", "Values": sorted(types)}]
    answer = await account.aws.call("ec2", "DescribeInstanceTypes", Filters=filters)
    missing = types - {item["InstanceType"] for item in answer.get("InstanceTypes") or ()}
    if missing:
        return fail(f"EC2 does not know {', '.join(sorted(missing))}")
    return ok(f"EC2 knows {', '.join(sorted(types))}")


async def _check_log_names(account: _Account) -> CheckResult:
    asked = 0
    for cluster in await account.clusters():
        if not await account.running_nodes(cluster):
            continue
        asked += 1
        try:
            pages = list_logs(account.aws, log_group(cluster.arn, cluster.name))
            names = [log.stream async for page in pages for log in page]
        except NotFoundError:
            continue
        matching = [name for name in names if NODE_STREAM.fullmatch(name)]
        if matching:
            return ok(f"{len(matching)} of {len(names)} streams of a cluster have such names")
        if names:
            return fail(f"no stream of a cluster has such a name; an example is '{names[0][:80]}'")
    if not asked:
        return unknown("no cluster here has a running node")
    return fail(f"none of {asked} clusters with nodes has the log group")


async def _check_slurm_metrics(account: _Account) -> CheckResult:
    clusters = [one for one in await account.clusters() if one.on_slurm and _size(one)]
    expected = {source.name for source in metrics.SLURM_METRICS.values()}
    for cluster in clusters:
        cluster_id = cluster.arn.rpartition("/")[2]
        listed = await _list_metrics(account.aws, metrics.SLURM, "ClusterId", cluster_id)
        matching = expected & listed
        if matching:
            return ok(f"CloudWatch has {len(matching)} of {len(expected)} metrics of a cluster")
        if listed:
            return fail(f"the metrics of a cluster have other names: {_some(listed)}")
    if not clusters:
        return unknown("no cluster here is a Slurm cluster with nodes")
    return fail(f"CloudWatch has no metrics of {len(clusters)} Slurm clusters in {metrics.SLURM}")


async def _check_eks_metrics(account: _Account) -> CheckResult:
    for cluster in await account.clusters():
        if cluster.eks_arn is None or not _size(cluster):
            continue
        eks = cluster.eks_arn.rpartition("/")[2]
        nodes = await metrics.nodes_with_metrics(account.aws, eks)
        if nodes:
            of_node = await metrics.metrics_of_node(account.aws, eks, next(iter(nodes)))
            if any(name.startswith("hyperpod_node_health_status_") for name in of_node):
                return ok(f"{len(nodes)} nodes of a cluster have such names")
            return fail("a node has metrics, but none of hyperpod_node_health_status_*")
        listed = await _list_metrics(account.aws, metrics.INSIGHTS, "ClusterName", eks)
        if listed:
            return fail(f"the metrics of a cluster have no such node names: {_some(listed)}")
    return unknown("no EKS cluster here has Container Insights")


async def _check_gpu_labels(account: _Account) -> CheckResult:
    now = time.time()
    for cluster in await account.clusters():
        if cluster.eks_arn is None:
            continue
        workspace = await workspace_of_addon(account.aws, cluster.eks_arn.rpartition("/")[2])
        if workspace is None:
            continue
        window = TimeRange(now - _GPU_METRIC_MINUTES * 60, now, 60)
        series = await query_range(account.aws, workspace, "DCGM_FI_DEV_GPU_UTIL", window)
        labelled = [
            one for one in series if one.labels.get("Hostname", "").startswith("hyperpod-") and "gpu" in one.labels
        ]
        if labelled:
            return ok(f"{len(labelled)} of {len(series)} GPUs have the labels Hostname and gpu")
        if series:
            return fail(f"the labels are {', '.join(sorted(series[0].labels))}")
    return unknown("no EKS cluster here has the add-on with GPU metrics")


async def _check_addon_permission(account: _Account) -> CheckResult:
    eks = next((one.eks_arn for one in await account.clusters() if one.eks_arn), None)
    if eks is None:
        return unknown("no cluster here is on EKS")
    try:
        await account.aws.call("eks", "DescribeAddon", clusterName=eks.rpartition("/")[2], addonName=ADDON)
    except NotFoundError:
        return ok("you may describe add-ons, and the cluster has none")
    return ok("you may describe the add-on")


def _size(cluster: HyperpodCluster) -> int:
    return sum(group.current for group in cluster.groups or ())


async def _list_metrics(aws: Aws, namespace: str, name: str, value: str) -> set[str]:
    """Names of metrics with a dimension, from the first page."""
    dimensions: list[Mapping[str, Any]] = [{"Name": name, "Value": value}]
    answer = await aws.call("cloudwatch", "ListMetrics", Namespace=namespace, Dimensions=dimensions)
    return {str(metric["MetricName"]) for metric in answer.get("Metrics") or ()}


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:5])
