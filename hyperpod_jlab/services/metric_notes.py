"""What is said of metrics that are not there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hyperpod_jlab.aws.metrics import SLURM
from hyperpod_jlab.aws.prometheus import ADDON
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.node_metrics import Source

_GPUS = frozenset({"gpu-utilization", "gpu-memory", "gpu-temperature"})
_HEALTH = frozenset({"healthy", "deep-health-check", "to-reboot", "to-replace"})
_EFA = frozenset({"efa-received", "efa-sent", "efa-dropped"})


def eks_of(cluster: HyperpodCluster) -> str | None:
    """Name of the EKS cluster behind a cluster."""
    return cluster.eks_arn.rpartition("/")[2] if cluster.eks_arn else None


def notes_on(
    cluster: HyperpodCluster, source: Source, shown: Collection[str], missing: Sequence[str]
) -> tuple[str, ...]:
    """What is to be said.

    Args:
        cluster: The cluster.
        source: Where the metrics are from.
        shown: Names of those that are there.
        missing: Names of those that could be there and are not.
    """
    if not shown:
        return (_none(cluster, source),)
    if source == "CloudWatch" and eks_of(cluster) is None:
        return ()
    why = "the add-on is too old for them" if source == "CloudWatch" else "nothing exports them"
    absent = set(missing)
    notes = []
    if absent >= _GPUS:
        notes.append(f"no metrics of GPUs: the nodes have none, or {why}")
    if absent >= _EFA:
        notes.append(f"no metrics of EFA: the nodes have none, or {why}")
    if absent >= _HEALTH:
        notes.append(
            "no metrics of health: the add-on is too old for HyperPod's; update it"
            if source == "CloudWatch"
            else "no metrics of health: the workspace has no labels of nodes"
        )
    return tuple(notes)


def _none(cluster: HyperpodCluster, source: Source) -> str:
    eks = eks_of(cluster)
    if source == "Prometheus":
        return f"the workspace has no metrics of {cluster.name} in this time"
    return _no_metrics_of_slurm(cluster) if eks is None else _no_metrics_of_eks(eks, cluster.region)


def _no_metrics_of_eks(eks: str, region: str) -> str:
    return (
        f"CloudWatch has no metrics of the EKS cluster {eks} in this time; they come from the add-on amazon-cloudwatch-observability: "
        f"aws eks create-addon --cluster-name {eks} --addon-name amazon-cloudwatch-observability --region {region} "
        "(the nodes' role needs the policy CloudWatchAgentServerPolicy). Those of HyperPod's own observability add-on "
        f"({ADDON}) are read from Amazon Managed Service for Prometheus where it is installed"
    )


def _no_metrics_of_slurm(cluster: HyperpodCluster) -> str:
    return (
        f"CloudWatch has no metrics of {cluster.name} in its namespace {SLURM} in this time. The observability of HyperPod's life cycle "
        "scripts (exporters for GPUs, EFA and Slurm) writes to Amazon Managed Service for Prometheus: name the workspace in the "
        'configuration, as prometheus = "https://aps-workspaces..." under the cluster'
    )
