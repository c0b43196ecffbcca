"""``hpj quotas``: what each team has of a HyperPod cluster on EKS, and how work is ordered there."""

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
from hyperpod_jlab.features.governance.service import governance_of

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Quota
    from hyperpod_jlab.features.governance.models import (
        Allocation,
        ClusterPolicy,
        Governance,
        TeamQuota,
    )
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


@click.command(
    cls=HpjCommand,
    help=_HELP,
    examples=("hpj quotas research-eks", "hpj quotas research-eks --json"),
)
@cluster_argument
@region_option
def quotas(cluster: str | None, region: str | None) -> None:
    """Show quotas and priorities."""

    async def read(hyperpod: Hyperpod) -> Governance:
        shown, _ = await governance_of(hyperpod, cluster, region, wait=_TIMEOUT)
        return shown.rows[0]

    found = with_services(read, asking=True)
    if invocation().as_json:
        print_json(found)
        return
    print_table(Table(_TITLES, [_row(one) for one in found.quotas], empty="no quotas"))
    for policy in found.policies:
        _print_policy(policy)
    print_notes(found.notes)


def _print_policy(policy: ClusterPolicy) -> None:
    print()
    words = [f"policy {policy.name}: {policy.state}"]
    if policy.fair_share is not None:
        words.append(f"fair share {policy.fair_share.lower()}")
    if policy.idle_sharing is not None:
        words.append(f"sharing of unallocated resources {policy.idle_sharing.lower()}")
    print(printable(", ".join(words)))
    rows = [
        (one.name, str(one.weight), f"{PRIORITY_LABEL}: {one.label}") for one in policy.priorities
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
    """Such as ``2 ml.g5.8xlarge, ml.p5.48xlarge 12 GPUs``."""
    return ", ".join(map(_allocation, allocated)) or "-"


def _allocation(one: Allocation) -> str:
    parts = [
        f"{amount:g} {word}"
        for amount, word in (
            (one.accelerators, "accelerators"),
            (one.partitions, one.partition),
            (one.cpus, "vCPUs"),
            (one.memory_gib, "GiB"),
        )
        if amount is not None
    ]
    head = one.instance_type if one.count is None else f"{one.count} {one.instance_type}"
    return " ".join([head, *parts])


def _used(used: Iterable[Quota]) -> str:
    """Such as ``nvidia.com/gpu 3/8 (1 borrowed)``."""
    return ", ".join(map(_use, used)) or "-"


def _use(one: Quota) -> str:
    def text(amount: float) -> str:
        return format_size(int(amount)) if one.resource in _BYTES else f"{amount:g}"

    borrowed = f" ({text(one.borrowed)} borrowed)" if one.borrowed else ""
    return f"{one.resource} {text(one.used)}/{text(one.nominal)}{borrowed}"
