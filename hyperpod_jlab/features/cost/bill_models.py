"""The bill of a HyperPod cluster, and what its idle nodes cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from hyperpod_jlab.aws.budgets import Spending
from hyperpod_jlab.core.cost import IdleRow
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.wire import Time

PRICE_OF_REQUEST = 0.01
"""What AWS charges for a request to Cost Explorer's API, in US dollars (AWS, "AWS Cost Management pricing")."""


@dataclass(frozen=True)
class CostTag:
    """A tag by which AWS assigns costs to a cluster."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def parse_tag(text: str) -> CostTag:
    """A tag, written as ``KEY=VALUE``.

    Raises:
        InvalidInputError: It is not written so.
    """
    key, _, value = text.partition("=")
    if not key or not value:
        raise InvalidInputError(
            f"'{text[:60]}' is not a tag",
            hint="write KEY=VALUE, such as ClusterName=ml-cluster",
            detail={"field": "tag"},
        )
    return CostTag(key, value)


@dataclass(frozen=True)
class BillRow:
    """A part of the bill.

    Attributes:
        instance_type: The instance type of nodes; null for everything else with the tag, such as volumes or file systems.
        hours: Hours of nodes; null where `instance_type` is.
        amount: The amount.
    """

    instance_type: str | None
    hours: float | None
    amount: float


@dataclass(frozen=True)
class BillDay:
    """The amount of one day, in UTC."""

    day: date
    amount: float


@dataclass(frozen=True)
class Bill:
    """What AWS charges for a cluster this month (unblended costs, in UTC).

    Attributes:
        cluster: The HyperPod cluster's name.
        tag: The tag by which its costs are found.
        begin: The first day of the month.
        end: The day after the last one that is asked for.
        currency: The currency, as ISO 4217; null if AWS has no costs.
        amount: The amount of the month to date; null if AWS has no costs.
        forecast: The amount that AWS expects for the whole month; null if there is none.
        estimated: Whether AWS may still change these numbers.
        rows: By instance type, the largest amount first.
        days: By day.
        node_hours_paid: Hours of all nodes.
        paid_requests: Requests to Cost Explorer that were made for it.
        asked_at: When AWS was asked.
        notes: What is missing, a sentence each.
    """

    cluster: str
    tag: CostTag
    begin: date
    end: date
    asked_at: Time
    paid_requests: int = 0
    currency: str | None = None
    amount: float | None = None
    forecast: float | None = None
    estimated: bool = False
    rows: tuple[BillRow, ...] = ()
    days: tuple[BillDay, ...] = ()
    node_hours_paid: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def hours_by_type(self) -> dict[str, float]:
        """Hours of nodes by instance type."""
        return {row.instance_type: row.hours or 0.0 for row in self.rows if row.instance_type}

    @property
    def prices_paid(self) -> dict[str, float]:
        """What a node hour cost on average, by instance type: with the account's discounts."""
        return {
            row.instance_type: row.amount / row.hours
            for row in self.rows
            if row.instance_type and row.hours
        }


@dataclass(frozen=True, kw_only=True)
class ComparedBill(Bill):
    """The bill, and our own count for the same time.

    Attributes:
        counted_node_hours: Hours of nodes that jobs had; null if the cluster is not configured here.
        counted_amount: What they cost by the configured prices; null if one is not known.
        idle: Nodes that are paid and that no job had, by instance type: the difference of the two.
        budget: The cluster's AWS budget; null if it has none or this user may not see it.
    """

    counted_node_hours: float | None = None
    counted_amount: float | None = None
    idle: tuple[IdleRow, ...] = ()
    budget: Spending | None = None
