"""Requests to Cost Explorer. AWS charges $0.01 for each, also for each page and each repetition."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, RefusedError
from hyperpod_jlab.features.cost.bill_models import BillDay, BillRow, CostTag

_COST, _USAGE = "UnblendedCost", "UsageQuantity"
_MAX_PAGES = 20

_NODE_HOURS = re.compile(r"(?:[A-Z0-9]+-)?[A-Za-z]*Cluster[A-Za-z]*:(ml\..+)")
"""Usage types of HyperPod's nodes, on demand (``USW2-Cluster:ml.p5.48xlarge``) or of reserved capacity; not ``USW2-Cluster:VolumeUsage.gp2``."""


@dataclass
class Paid:
    """Counts the requests that AWS charges for."""

    requests: int = 0

    async def call(self, aws: Aws, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call an operation of Cost Explorer.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        self.requests += 1
        response = await aws.call("ce", operation, **parameters)
        self.requests += int(response.get("ResponseMetadata", {}).get("RetryAttempts", 0))
        return response


@dataclass
class Costs:
    """Costs by currency, day and usage type.

    Attributes:
        amounts: The amounts, by currency and then by day and usage type.
        quantities: The quantities by usage type, whatever their unit.
        estimated_since: The first day whose numbers AWS may still change.
    """

    amounts: dict[str, dict[tuple[date, str], float]] = field(default_factory=dict)
    quantities: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    estimated_since: date | None = None

    def add(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Add days of an answer."""
        for result in results:
            day = date.fromisoformat(result["TimePeriod"]["Start"][:10])
            if result.get("Estimated"):
                self.estimated_since = min(day, self.estimated_since or day)
            for group in result.get("Groups", ()):
                name = str(group["Keys"][0])
                cost = group["Metrics"][_COST]
                by_usage = self.amounts.setdefault(str(cost["Unit"]), defaultdict(float))
                by_usage[day, name] += float(cost["Amount"])
                self.quantities[name] += float(group["Metrics"][_USAGE]["Amount"])

    def rows(self, currency: str) -> tuple[BillRow, ...]:
        """The amounts by instance type, the largest first; everything else is one row."""
        amounts: dict[str | None, float] = defaultdict(float)
        hours: dict[str, float] = defaultdict(float)
        for (_, usage_type), amount in self.amounts[currency].items():
            match = _NODE_HOURS.fullmatch(usage_type)
            amounts[match[1] if match else None] += amount
        for usage_type, quantity in self.quantities.items():
            if match := _NODE_HOURS.fullmatch(usage_type):
                hours[match[1]] += quantity
        rows = [BillRow(name, hours[name] if name else None, amounts[name]) for name in amounts]
        return tuple(sorted(rows, key=lambda row: (-row.amount, row.instance_type or "~")))

    def days(self, currency: str) -> tuple[BillDay, ...]:
        """The amounts by day."""
        amounts: dict[date, float] = defaultdict(float)
        for (day, _), amount in self.amounts[currency].items():
            amounts[day] += amount
        return tuple(BillDay(day, amounts[day]) for day in sorted(amounts))


async def read_costs(aws: Aws, paid: Paid, tag: CostTag, begin: date, end: date) -> Costs:
    """The costs of a period.

    Args:
        aws: AWS; Cost Explorer has one endpoint for all regions of a partition.
        paid: Counts the requests.
        tag: The tag of the cluster.
        begin: The first day.
        end: The day after the last one; AWS refuses a period without a day.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    costs = Costs()
    token: dict[str, str] = {}
    for _ in range(_MAX_PAGES):
        response = await paid.call(
            aws,
            "GetCostAndUsage",
            TimePeriod=_period(begin, end),
            Granularity="DAILY",
            Metrics=[_COST, _USAGE],
            Filter=_filter(tag),
            GroupBy=[{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
            **token,
        )
        costs.add(response["ResultsByTime"])
        if not response.get("NextPageToken"):
            return costs
        token = {"NextPageToken": str(response["NextPageToken"])}
    raise RefusedError(
        f"Cost Explorer has more than {_MAX_PAGES} pages for the tag {tag}, and each costs money",
        code="bill_too_long",
        hint="choose a tag that only the cluster has, with --tag KEY=VALUE",
    )


async def read_forecast(
    aws: Aws, paid: Paid, tag: CostTag, today: date, end: date
) -> tuple[float, str] | None:
    """The amount that AWS expects from today on, and its currency; None if it has too little data for a forecast.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    try:
        response = await paid.call(
            aws,
            "GetCostForecast",
            TimePeriod=_period(today, end),
            Metric="UNBLENDED_COST",
            Granularity="DAILY",
            Filter=_filter(tag),
        )
    except HyperpodError as error:
        if error.detail.get("aws_code") == "DataUnavailableException":
            return None
        raise
    return float(response["Total"]["Amount"]), str(response["Total"]["Unit"])


async def tag_status(aws: Aws, paid: Paid, key: str) -> str | None:
    """``Active`` or ``Inactive``: whether costs are assigned by a tag; None if the billing does not know the tag.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    response = await paid.call(aws, "ListCostAllocationTags", TagKeys=[key])
    statuses = [str(one["Status"]) for one in response.get("CostAllocationTags", ())]
    return "Active" if "Active" in statuses else next(iter(statuses), None)


def month_of(today: date) -> tuple[date, date]:
    """The first day of a day's month, and that of the next month."""
    begin = today.replace(day=1)
    return begin, (begin + timedelta(days=32)).replace(day=1)


def _period(begin: date, end: date) -> dict[str, str]:
    return {"Start": begin.isoformat(), "End": end.isoformat()}


def _filter(tag: CostTag) -> dict[str, Any]:
    return {"Tags": {"Key": tag.key, "Values": [tag.value], "MatchOptions": ["EQUALS"]}}
