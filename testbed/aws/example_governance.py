"""Task governance to look at: three teams on the example's cluster on EKS, one of which could not be made."""

from __future__ import annotations

from typing import Any

from testbed.aws.state import Account, Cluster, ComputeQuota, SchedulerConfig


def add_governance(account: Account, region: str, cluster: Cluster) -> None:
    """Give a cluster a policy, and quotas to the teams vision, speech and robots."""
    account.policies.setdefault(region, []).append(
        SchedulerConfig(
            "b0c1d2e3f4a5",
            f"{cluster.name}-policy",
            cluster.arn,
            {
                "PriorityClasses": [
                    {"Name": "training", "Weight": 80},
                    {"Name": "inference", "Weight": 100},
                    {"Name": "experiments", "Weight": 20},
                ],
                "FairShare": "Enabled",
                "IdleResourceSharing": "Enabled",
            },
        )
    )
    quota = ("ml.g5.8xlarge", "LendAndBorrow")
    account.quotas.setdefault(region, []).extend(
        [
            _quota("a00000000001", "vision", cluster, quota, 70, Count=4),
            _quota("a00000000002", "speech", cluster, quota, 30, Accelerators=1, VCpu=16.0),
            _quota(
                *("a00000000003", "robots", cluster, ("ml.p5.48xlarge", "DontLend"), 0),
                Count=1,
                status="CreateFailed",
                failure="The cluster has no instance group of type ml.p5.48xlarge.",
            ),
        ]
    )


def _quota(
    ident: str,
    team: str,
    cluster: Cluster,
    what: tuple[str, str],
    weight: int,
    *,
    status: str = "Created",
    failure: str | None = None,
    **amounts: Any,
) -> ComputeQuota:
    instance_type, strategy = what
    sharing: dict[str, Any] = {"Strategy": strategy}
    if strategy == "LendAndBorrow":
        sharing["BorrowLimit"] = 50
    return ComputeQuota(
        ident,
        f"{team}-quota",
        cluster.arn,
        {
            "ComputeQuotaResources": [{"InstanceType": instance_type, **amounts}],
            "ResourceSharingConfig": sharing,
            "PreemptTeamTasks": "LowerPriority",
        },
        {"TeamName": team, "FairShareWeight": weight},
        status,
        failure,
    )
