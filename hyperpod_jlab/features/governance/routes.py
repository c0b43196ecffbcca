"""Requests about the task governance of HyperPod clusters on EKS."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.clusters.routes import AwsAged, LiveQuery, aws_freshness
from hyperpod_jlab.features.governance.models import Governance
from hyperpod_jlab.features.governance.service import read_joined_governance
from hyperpod_jlab.server.call import Call


@dataclass(frozen=True, kw_only=True)
class ClusterGovernance(AwsAged, Governance):
    """The task governance of a HyperPod cluster."""


async def show_governance(call: Call, cluster: str, query: LiveQuery) -> ClusterGovernance:
    """Get the task governance of a HyperPod cluster on EKS, with its usage if the cluster is configured."""
    cached, loading = await read_joined_governance(await call.hyperpod(), cluster, refresh=query.refresh)
    governance = cached.rows[0]
    return ClusterGovernance(**{**vars(governance), **vars(aws_freshness(cached, governance.notes, loading=loading))})
