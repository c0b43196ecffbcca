"""Checks of facts that change nothing: they describe, list, look up and simulate."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hyperpod_jlab.admin.verify.fact import Finding, holds, unknown, wrong
from hyperpod_jlab.admin.verify.ground import Ground
from hyperpod_jlab.aws import metrics
from hyperpod_jlab.aws.clusters import node_target
from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.node_logs import list_logs
from hyperpod_jlab.aws.prometheus import ADDON, query_range, workspace_of_addon
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import DeniedError, NotFoundError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.node_metrics import Window

Check = Callable[[Ground], Awaitable[Finding]]

_NEEDS_ROLE = "needs --as-role: a role that you may assume"
_NODE_STREAM = re.compile(r"[^/]+/[^/]+/i-[0-9a-f]{8,17}")
_MINUTES = 15
"""Minutes of GPU metrics that are looked at."""


async def pass_role(ground: Ground) -> Finding:
    """Whether the caller may pass the domain's role on; the fact itself is checked with ``--write`` only."""
    if ground.domain is None:
        return unknown(
            "needs --write and --as-role; with --domain it says whether you have iam:PassRole"
        )
    told = await ground.aws.call("sagemaker", "DescribeDomain", DomainId=ground.domain)
    role = (told.get("DefaultUserSettings") or {}).get("ExecutionRole")
    identity = await ground.aws.call("sts", "GetCallerIdentity")
    source = await _principal(ground.aws, str(identity["Arn"]))
    answer = await ground.aws.call(
        "iam",
        "SimulatePrincipalPolicy",
        PolicySourceArn=source,
        ActionNames=["iam:PassRole"],
        ResourceArns=[role],
    )
    allowed = all(one["EvalDecision"] == "allowed" for one in answer["EvaluationResults"])
    words = (
        "you have iam:PassRole on the domain's role, so 'hpj admin apply' works for you either way; the stack's functions do not have it"
        if allowed
        else "you do not have iam:PassRole on the domain's role, so this fact decides whether 'hpj admin apply' works for you"
    )
    return unknown(f"needs --write and --as-role; {words}")


async def _principal(aws: Aws, arn: str) -> str:
    """The user or role of a caller, as IAM simulates it: a session's ARN does not say the role's path."""
    if ":assumed-role/" not in arn:
        return arn
    told = await aws.call("iam", "GetRole", RoleName=arn.split("/")[1])
    return str(told["Role"]["Arn"])


def event_check(name: str, members: Sequence[str]) -> Check:
    """A check that CloudTrail's records of a call have these members of the request."""

    async def check(ground: Ground) -> Finding:
        wanted = [{"AttributeKey": "EventName", "AttributeValue": name}]
        told = await ground.aws.call(
            "cloudtrail", "LookupEvents", LookupAttributes=wanted, MaxResults=20
        )
        records = [json.loads(one["CloudTrailEvent"]) for one in told.get("Events") or ()]
        good = [
            one.get("requestParameters") or {}
            for one in records
            if not one.get("errorCode") and one.get("eventSource") == "sagemaker.amazonaws.com"
        ]
        if not good:
            return unknown(f"CloudTrail has no {name} of the last 90 days in this region")
        for one in good:
            missing = [member for member in members if not isinstance(one.get(member), str)]
            if missing:
                return wrong(
                    f"a record has no requestParameters.{missing[0]}; it has {', '.join(sorted(one)) or 'nothing'}"
                )
        return holds(f"{len(good)} {'record has' if len(good) == 1 else 'records have'} them")

    return check


async def target_of_nodes(ground: Ground) -> Finding:
    """Whether Systems Manager has heard of nodes by the name that we give them."""
    asked = connected = 0
    for cluster in await ground.clusters():
        for node in await ground.running_nodes(cluster):
            target = node_target(cluster.arn, node)
            told = await ground.aws.call("ssm", "GetConnectionStatus", Target=target)
            asked += 1
            connected += str(told["Status"]).lower() == "connected"
    if not asked:
        return unknown("no cluster here has a node that runs")
    if connected:
        return holds(f"{connected} of {asked} nodes are connected under that name")
    return wrong(
        f"none of {asked} nodes is connected under that name; before you believe it, try: hpj terminal NODE --open"
    )


async def types_of_ec2(ground: Ground) -> Finding:
    """Whether EC2 knows the types of the clusters' groups."""
    found = {
        group.instance_type.removeprefix("ml.")
        for cluster in await ground.clusters()
        for group in cluster.groups or ()
        if group.instance_type
    }
    if not found:
        return unknown("no cluster here has an instance group")
    wanted = [{"Name": "instance-type", "Values": sorted(found)}]
    told = await ground.aws.call("ec2", "DescribeInstanceTypes", Filters=wanted)
    missing = found - {one["InstanceType"] for one in told.get("InstanceTypes") or ()}
    if missing:
        return wrong(f"EC2 does not know {', '.join(sorted(missing))}")
    return holds(f"EC2 knows {', '.join(sorted(found))}")


async def names_of_logs(ground: Ground) -> Finding:
    """Whether nodes write to the logs that we look for."""
    looked = []
    for cluster in await ground.clusters():
        if not await ground.running_nodes(cluster):
            continue
        looked.append(cluster.name)
        try:
            pages = list_logs(ground.aws, log_group(cluster.arn, cluster.name))
            names = [one.stream async for page in pages for one in page]
        except NotFoundError:
            continue
        good = [name for name in names if _NODE_STREAM.fullmatch(name)]
        if good:
            return holds(f"{len(good)} of {len(names)} streams of one cluster are called so")
        if names:
            return wrong(f"no stream of a cluster is called so; one is '{names[0][:80]}'")
    if not looked:
        return unknown("no cluster here has a node that runs")
    return wrong(f"none of {len(looked)} clusters with nodes has the log group")


async def metrics_of_slurm(ground: Ground) -> Finding:
    """Whether CloudWatch has metrics of clusters with Slurm."""
    some = [one for one in await ground.clusters() if one.orchestrator == "slurm" and _size(one)]
    if not some:
        return unknown("no cluster here is a Slurm cluster with nodes")
    wanted = {source.name for source in metrics.ON_SLURM.values()}
    for cluster in some:
        found = await _metrics(
            ground.aws, metrics.SLURM, "ClusterId", cluster.arn.rpartition("/")[2]
        )
        known = wanted & {one["MetricName"] for one in found}
        if known:
            return holds(f"CloudWatch has {len(known)} of {len(wanted)} metrics of a cluster")
        if found:
            return wrong(f"the metrics of a cluster have other names: {_some_names(found)}")
    return wrong(f"CloudWatch has no metrics of {len(some)} Slurm clusters in {metrics.SLURM}")


async def metrics_of_eks(ground: Ground) -> Finding:
    """Whether Container Insights names nodes as we look for them."""
    for cluster in await ground.clusters():
        if cluster.eks_arn is None or not _size(cluster):
            continue
        eks = cluster.eks_arn.rpartition("/")[2]
        nodes = await metrics.nodes_with_metrics(ground.aws, eks)
        if not nodes:
            found = await _metrics(ground.aws, metrics.INSIGHTS, "ClusterName", eks)
            if found:
                return wrong(f"a cluster's metrics have no nodes so; some are {_some_names(found)}")
            continue
        known = await metrics.metrics_of_node(ground.aws, eks, next(iter(nodes)))
        health = [name for name in known if name.startswith("hyperpod_node_health_status_")]
        if not health:
            return wrong("a node has metrics, but none of hyperpod_node_health_status_*")
        return holds(f"{len(nodes)} nodes of a cluster are named so")
    return unknown("no EKS cluster here has Container Insights")


def _size(cluster: HyperpodCluster) -> int:
    return sum(group.current for group in cluster.groups or ())


async def _metrics(aws: Aws, namespace: str, name: str, value: str) -> list[Mapping[str, Any]]:
    """Metrics of one thing: the first page of them."""
    on = [{"Name": name, "Value": value}]
    told = await aws.call("cloudwatch", "ListMetrics", Namespace=namespace, Dimensions=on)
    return list(told.get("Metrics") or ())


def _some_names(found: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(sorted({str(one["MetricName"]) for one in found})[:5])


async def labels_of_gpus(ground: Ground) -> Finding:
    """Whether the add-on's metrics of GPUs have the labels by which we find a node."""
    now = time.time()
    for cluster in await ground.clusters():
        if cluster.eks_arn is None:
            continue
        eks = cluster.eks_arn.rpartition("/")[2]
        workspace = await workspace_of_addon(ground.aws, eks)
        if workspace is None:
            continue
        window = Window(now - _MINUTES * 60, now, 60)
        series = await query_range(ground.aws, workspace, "DCGM_FI_DEV_GPU_UTIL", window)
        if not series:
            continue
        labelled = [
            one
            for one in series
            if one.labels.get("Hostname", "").startswith("hyperpod-") and "gpu" in one.labels
        ]
        if labelled:
            return holds(f"{len(labelled)} of {len(series)} GPUs are labelled so")
        return wrong(f"the labels are {', '.join(sorted(series[0].labels))}")
    return unknown("no EKS cluster here has the add-on and GPUs that it measures")


async def right_on_addon(ground: Ground) -> Finding:
    """On which resource the right to describe an add-on is asked for."""
    eks = next((one.eks_arn for one in await ground.clusters() if one.eks_arn), None)
    if eks is None:
        return unknown("no cluster here is on EKS")
    addon = f"{eks.replace(':cluster/', ':addon/')}/*"
    allowed = {}
    for words, resource in (("add-on", addon), ("cluster", eks)):
        aws = await ground.limited(["eks:DescribeAddon"], resource)
        if aws is None:
            return unknown(_NEEDS_ROLE)
        allowed[words] = await _may_describe(aws, eks.rpartition("/")[2])
    if allowed["add-on"]:
        return holds("the right on the add-on is enough")
    if allowed["cluster"]:
        return wrong("it needs the right on the cluster")
    return unknown("the role of --as-role may not describe add-ons at all")


async def _may_describe(aws: Aws, eks: str) -> bool:
    try:
        await aws.call("eks", "DescribeAddon", clusterName=eks, addonName=ADDON)
    except DeniedError:
        return False
    except NotFoundError:
        return True  # it was allowed, and there is no add-on
    return True


READ_CHECKS: Mapping[str, Check] = {
    "create-profile-event": event_check("CreateUserProfile", ("domainId", "userProfileName")),
    "create-space-event": event_check("CreateSpace", ("domainId", "spaceName")),
    "node-target": target_of_nodes,
    "ec2-knows-types": types_of_ec2,
    "node-log-names": names_of_logs,
    "slurm-metrics": metrics_of_slurm,
    "eks-node-metrics": metrics_of_eks,
    "observability-labels": labels_of_gpus,
    "addon-right": right_on_addon,
}
"""The checks of all facts that are checked so, by the facts' names."""
