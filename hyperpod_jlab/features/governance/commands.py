"""``hpj quotas``: the teams' quotas of a HyperPod cluster on EKS, and how work is prioritized."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_json, print_notes, print_table
from hyperpod_jlab.cli.parameters import cluster_argument, region_option
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.quantities import format_size
from hyperpod_jlab.features.governance.models import PRIORITY_LABEL
from hyperpod_jlab.features.governance.service import read_joined_governance

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Quota
    from hyperpod_jlab.features.governance.models import Allocation, ClusterPolicy, Governance, TeamQuota
    from hyperpod_jlab.run.services import Hyperpod

_TITLES = (
    *("TEAM", "STATE", "ALLOCATED", "IN USE", "RUNNING", "WAITING", "SHARING", "BORROWS UP TO"),
    *("WEIGHT", "PREEMPTION", "NAMESPACE", "REASON"),
)
_SHARING = {"Lend": "lends", "DontLend": "keeps its own", "LendAndBorrow": "lends and borrows"}
_PREEMPTION = {"LowerPriority": "lower priority", "Never": "never"}
_TIMEOUT = 60.0
"""Seconds to wait for Kueue's queues."""

_BYTES = {"memory", "ephemeral-storage"}

_HELP = """\
Show the task governance of a HyperPod cluster on EKS: the quota of each team, how much it may borrow, and the priority classes.

The usage is shown only if the cluster is configured.
"""


@click.command(cls=HpjCommand, help=_HELP, examples=("hpj quotas research-eks", "hpj quotas research-eks --json"))
@cluster_argument
@region_option
def quotas(cluster: str | None, region: str | None) -> None:
    """Show quotas and priorities."""

    async def read(hyperpod: Hyperpod) -> Governance:
        cached, _ = await read_joined_governance(hyperpod, cluster, region, wait=_TIMEOUT)
        return cached.rows[0]

    governance = with_services(read, asking=True)
    if invocation().as_json:
        print_json(governance)
        return
    print_table(Table(_TITLES, [_row(quota) for quota in governance.quotas], empty="no quotas"))
    for policy in governance.policies:
        _print_policy(policy)
    print_notes(governance.notes)


def _print_policy(policy: ClusterPolicy) -> None:
    print()
    parts = [f"policy {policy.name}: {policy.state}"]
    if policy.fair_share is not None:
        parts.append(f"fair share {policy.fair_share.lower()}")
    if policy.idle_sharing is not None:
        parts.append(f"sharing of unallocated resources {policy.idle_sharing.lower()}")
    print(printable(", ".join(parts)))
    rows = [
        (priority.name, str(priority.weight), f"{PRIORITY_LABEL}: {priority.label}") for priority in policy.priorities
    ]
    print_table(Table(("PRIORITY", "WEIGHT", "LABEL"), rows))


def _row(quota: TeamQuota) -> Sequence[str]:
    return (
        quota.team,
        quota.state,
        _allocations(quota.allocated),
        "-" if quota.used is None else _used(quota.used),
        "-" if quota.running is None else str(quota.running),
        "-" if quota.waiting is None else str(quota.waiting),
        _SHARING.get(quota.sharing or "", quota.sharing or "-"),
        _borrows(quota),
        "-" if quota.weight is None else str(quota.weight),
        _PREEMPTION.get(quota.preemption or "", quota.preemption or "-"),
        quota.namespace,
        quota.reason or "",
    )


def _borrows(quota: TeamQuota) -> str:
    if quota.borrow_most:
        return _allocations(quota.borrow_most)
    return "-" if quota.borrow_percent is None else f"{quota.borrow_percent} %"


def _allocations(allocated: Iterable[Allocation]) -> str:
    """For example ``2 ml.g5.8xlarge, ml.p5.48xlarge 12 GPUs``."""
    return ", ".join(map(_allocation, allocated)) or "-"


def _allocation(allocation: Allocation) -> str:
    parts = [
        f"{amount:g} {unit}"
        for amount, unit in (
            (allocation.accelerators, "accelerators"),
            (allocation.partitions, allocation.partition),
            (allocation.cpus, "vCPUs"),
            (allocation.memory_gib, "GiB"),
        )
        if amount is not None
    ]
    head = allocation.instance_type if allocation.count is None else f"{allocation.count} {allocation.instance_type}"
    return " ".join([head, *parts])


def _used(quotas: Iterable[Quota]) -> str:
    """For example ``nvidia.com/gpu 3/8 (1 borrowed)``."""
    return ", ".join(map(_use, quotas)) or "-"


def _use(quota: Quota) -> str:
    def text(amount: float) -> str:
        return format_size(int(amount)) if quota.resource in _BYTES else f"{amount:g}"

    borrowed = f" ({text(quota.borrowed)} borrowed)" if quota.borrowed else ""
    return f"{quota.resource} {text(quota.used)}/{text(quota.nominal)}{borrowed}"
