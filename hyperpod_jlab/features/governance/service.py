"""Task governance of a HyperPod cluster: quotas and policies from AWS, with their usage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.cache import CachedRows
from hyperpod_jlab.core.cluster import Queue
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, UnreachableError, UnsupportedError
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.features.governance.aws import list_policies, list_quotas, quota_failure
from hyperpod_jlab.features.governance.models import ClusterPolicy, Governance, TeamQuota, with_use
from hyperpod_jlab.run.services import Hyperpod

_MAX_FAILURES = 10
"""Maximum number of failed quotas to explain: each needs its own request."""


async def read_governance(aws: Aws, cluster: HyperpodCluster) -> Governance:
    """A cluster's task governance from AWS. If either quotas or policies fail, a note says why.

    Args:
        aws: AWS in the cluster's region.
        cluster: The cluster, described.

    Raises:
        UnsupportedError: The cluster is not on EKS, so it has none.
        HyperpodError: Both failed (see `aws.errors`).
    """
    if not cluster.on_eks:
        raise UnsupportedError(
            f"only clusters on EKS have task governance; {cluster.name} is not on EKS",
            code="no_governance",
            hint=f"see the limits of its Slurm partitions: hpj queues {(*cluster.configured_as, 'NAME')[0]}",
            detail={"orchestrator": cluster.orchestrator},
        )
    quotas, policies = await asyncio.gather(
        list_quotas(aws, cluster.arn), list_policies(aws, cluster.arn), return_exceptions=True
    )
    notes: list[str] = []
    if isinstance(quotas, BaseException):
        if not isinstance(quotas, HyperpodError) or isinstance(policies, BaseException):
            raise quotas
        notes.append(f"AWS did not return the quotas: {quotas}")
        quotas = []
    if isinstance(policies, BaseException):
        if not isinstance(policies, HyperpodError):
            raise policies
        notes.append(f"AWS did not return the cluster's policy: {policies}")
        policies = []
    explained_quotas, unexplained = await _explain_failures(aws, quotas)
    notes += unexplained + _undescribed_notes(policies)
    if not quotas and not policies and not notes:
        notes.append(
            "the cluster has no quotas and no policy; an administrator creates them in the SageMaker console, under Task governance"
        )
    return Governance(cluster.name, tuple(explained_quotas), tuple(policies), tuple(notes))


def with_usage(governance: Governance, queues: Sequence[Queue] | HyperpodError | None) -> Governance:
    """Governance with the usage according to Kueue.

    Args:
        governance: AWS' data.
        queues: The queues; or why they are missing; None: the cluster is not configured, so they were not queried.
    """
    if not governance.quotas:
        return governance
    if queues is None:
        note = "the cluster is not configured, so its usage is unknown"
        return replace(governance, notes=(*governance.notes, note))
    if isinstance(queues, HyperpodError):
        note = f"the usage is unknown: {queues}"
        return replace(governance, notes=(*governance.notes, note))
    return replace(governance, quotas=with_use(governance.quotas, queues))


async def _explain_failures(aws: Aws, quotas: Sequence[TeamQuota]) -> tuple[list[TeamQuota], list[str]]:
    """The quotas with the reasons of failures, and notes where AWS could not give them."""
    failed_quotas = [quota for quota in quotas if quota.failed][:_MAX_FAILURES]
    failures = await asyncio.gather(
        *(quota_failure(aws, quota.quota_id) for quota in failed_quotas), return_exceptions=True
    )
    reasons: dict[str, str | None] = {}
    notes: dict[str, None] = {}
    for quota, reason in zip(failed_quotas, failures, strict=True):
        if isinstance(reason, NotFoundError):
            continue
        if isinstance(reason, HyperpodError):
            notes[f"the reason why quotas failed is unknown: {reason}"] = None
        elif isinstance(reason, BaseException):
            raise reason
        else:
            reasons[quota.quota_id] = reason
    updated = [replace(item, reason=reasons.get(item.quota_id, item.reason)) for item in quotas]
    return updated, list(notes)


def _undescribed_notes(policies: Sequence[ClusterPolicy]) -> list[str]:
    return [
        f"the policy {policy.name}: {policy.reason}"
        for policy in policies
        if policy.reason and policy.state != "failed"
    ]


_QUEUES_WAIT_S = 1.0
"""Seconds to wait for Kueue's queues; then the response is sent without them."""


class SlowSchedulerError(UnreachableError):
    """The scheduler has not answered yet."""


async def read_joined_governance(
    services: Hyperpod,
    cluster: str | None,
    region: str | None = None,
    *,
    refresh: bool = False,
    wait: float = _QUEUES_WAIT_S,
) -> tuple[CachedRows[Governance], bool]:
    """The task governance of a HyperPod cluster on EKS, a list with one entry, with its usage if the cluster is configured.

    Args:
        services: The services.
        cluster: The cluster (see `Clusters.resolve_hyperpod`).
        region: Its region; default: see `aws.session.Aws`.
        refresh: Query AWS now.
        wait: Seconds to wait for Kueue's queues.

    Returns:
        It, and whether the queues are on their way.

    Raises:
        UnsupportedError: The cluster is not on EKS.
        NotFoundError: The cluster does not exist.
        HyperpodError: See `aws.errors`.
    """
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    aws = services.hyperpod_clusters(resolved.region)
    cached = await aws.read_for_cluster("governance", resolved.aws_name, read_governance, refresh=refresh)
    queues = await _queues(services, await aws.describe(resolved.aws_name), wait)
    rows = [with_usage(governance, queues) for governance in cached.rows]
    return replace(cached, rows=rows), isinstance(queues, SlowSchedulerError)


async def _queues(services: Hyperpod, cluster: HyperpodCluster, wait: float) -> Sequence[Queue] | HyperpodError | None:
    """Kueue's queues if the cluster is configured, or why they are missing."""
    if not cluster.configured_as:
        return None
    name = cluster.configured_as[0]
    query = services.snapshots.last(("queues", name), lambda: services.queues(name))
    try:
        return (await asyncio.wait_for(query, wait)).value
    except TimeoutError:
        return SlowSchedulerError(f"{name} has not answered yet")
    except HyperpodError as error:
        return error
