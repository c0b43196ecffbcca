"""Requests about the task governance of HyperPod clusters on EKS."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.clusters.routes import AwsAged, AwsQuery, aws_freshness
from hyperpod_jlab.features.governance.models import Governance
from hyperpod_jlab.features.governance.service import governance_of
from hyperpod_jlab.server.call import Call


@dataclass(frozen=True, kw_only=True)
class ClusterGovernance(AwsAged, Governance):
    """The task governance of a HyperPod cluster."""


async def show_governance(call: Call, cluster: str, query: AwsQuery) -> ClusterGovernance:
    """The task governance of a HyperPod cluster on EKS; what is in use where the cluster is configured."""
    shown, loading = await governance_of(await call.hyperpod(), cluster, refresh=query.refresh)
    found = shown.rows[0]
    return ClusterGovernance(
        **{**vars(found), **vars(aws_freshness(shown, found.notes, loading=loading))}
    )
