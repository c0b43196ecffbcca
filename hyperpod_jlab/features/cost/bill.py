"""The bill of a HyperPod cluster: from Cost Explorer if the user asks for it, otherwise from the cache."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from hyperpod_jlab.aws.budgets import read_spending
from hyperpod_jlab.core.cost import idle_cost
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, RefusedError
from hyperpod_jlab.features.cost.aws import (
    Costs,
    Paid,
    month_of,
    read_costs,
    read_forecast,
    tag_status,
)
from hyperpod_jlab.features.cost.bill_models import Bill, ComparedBill, CostTag, parse_tag
from hyperpod_jlab.features.cost.service import count_usage
from hyperpod_jlab.storage.cache_file import read_cache, write_cache

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from hyperpod_jlab.aws.session import Aws
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.run.services import Hyperpod

TTL_S = 6 * 3600.0
"""Seconds for which a bill is kept: AWS updates its data once or a few times a day."""

NOT_ASKED = "paid_request"
"""Code of the error that the answer costs money and was not asked for."""

DEFAULT_KEY = "ClusterName"
"""The tag that AWS' own guides for HyperPod put on clusters."""

_FILE = "bills.json"
_CONSOLE = (
    "in the Billing console, under Cost allocation tags, with the organization's management account"
)


@cache
def _kind() -> TypeAdapter[dict[str, Bill]]:
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, Bill])


async def read_bill(
    services: Hyperpod,
    cluster: str | None,
    region: str | None = None,
    *,
    tag: str | None = None,
    ask: bool = False,
    refresh: bool = False,
    today: date | None = None,
) -> Bill:
    """The bill of a HyperPod cluster of this month to date, at most six hours old.

    Args:
        services: The services.
        cluster: The cluster (see `Clusters.resolve_hyperpod`).
        region: Its region; default: see `aws.session.Aws`.
        tag: The tag by which AWS assigns its costs, as ``KEY=VALUE``; default: see `choose_tag`.
        ask: Whether paid requests may be made.
        refresh: Ask AWS even if there is an answer in the cache.
        today: The day; default: today in UTC.

    Raises:
        RefusedError: There is no answer in the cache, and `ask` is false (``paid_request``).
        InvalidInputError: The tag is not known (``no_cost_tag``).
        HyperpodError: See `aws.errors`.
    """
    given = parse_tag(tag) if tag is not None else None
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    clusters = services.hyperpod_clusters(resolved.region)
    described = await clusters.describe(resolved.aws_name)
    chosen = given or choose_tag(described, (await clusters.tags(described.arn)).rows)
    day = today or datetime.now(UTC).date()
    key = f"{described.arn} {chosen}"
    cached = await asyncio.to_thread(read_cache, _FILE, _kind()) or {}
    bill = cached.get(key)
    if bill is not None and not refresh and _is_fresh(bill, day):
        return bill
    if not ask:
        raise RefusedError(
            f"the bill of {described.name} needs about 2 requests to Cost Explorer, and AWS charges $0.01 for each",
            code=NOT_ASKED,
            hint="confirm with --yes, or in the REST API with ask=true",
            detail={"cluster": described.name, "tag": str(chosen)},
        )
    currency = services.settings.cost.currency
    bill = await ask_aws(clusters.aws, described.name, chosen, day, currency)
    kept = {name: one for name, one in cached.items() if _is_fresh(one, day)}
    await asyncio.to_thread(write_cache, _FILE, _kind(), {**kept, key: bill})
    return bill


async def read_compared_bill(
    services: Hyperpod,
    cluster: str | None,
    region: str | None = None,
    *,
    tag: str | None = None,
    ask: bool = False,
    refresh: bool = False,
) -> ComparedBill:
    """The bill beside our own count of the same days and the budget (see `read_bill`)."""
    bill = await read_bill(services, cluster, region, tag=tag, ask=ask, refresh=refresh)
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    described = await services.hyperpod_clusters(resolved.region).describe(resolved.aws_name)
    try:
        budget = await read_spending(described.arn, described.name)
    except HyperpodError as error:
        budget = None
        bill = replace(bill, notes=(*bill.notes, f"the budget is unknown: {error.message}"))
    name = resolved.configured
    if name is None or not bill.days:
        return ComparedBill(**vars(bill), budget=budget)
    begin = datetime.combine(bill.begin, datetime.min.time(), UTC).timestamp()
    end = datetime.combine(bill.days[-1].day, datetime.max.time(), UTC).timestamp()
    end = min(end, bill.asked_at)
    try:
        counter, notes = await count_usage(services, "cluster", begin, end, [name])
    except HyperpodError as error:
        note = f"jobs were not counted: {error.message}"
        return ComparedBill(**{**vars(bill), "notes": (*bill.notes, note)}, budget=budget)
    rows = counter.report().rows
    idle = idle_cost(bill.hours_by_type, counter.allocated(name), bill.prices_paid)
    return ComparedBill(
        **{**vars(bill), "notes": tuple(dict.fromkeys((*bill.notes, *notes)))},
        counted_node_hours=sum(row.node_hours for row in rows),
        counted_amount=None
        if any(row.amount is None for row in rows)
        else sum(row.amount or 0.0 for row in rows),
        idle=tuple(idle),
        budget=budget,
    )


def choose_tag(cluster: HyperpodCluster, tags: list[tuple[str, str]]) -> CostTag:
    """The cluster's tag for its costs: ``ClusterName``, else the only one whose value is the cluster's name.

    Raises:
        InvalidInputError: There is none (``no_cost_tag``).
    """
    by_key = dict(tags)
    if by_key.get(DEFAULT_KEY):  # an empty value asks for what does not have the tag
        return CostTag(DEFAULT_KEY, by_key[DEFAULT_KEY])
    named = [key for key, value in tags if value == cluster.name]
    if len(named) == 1:
        return CostTag(named[0], cluster.name)
    raise InvalidInputError(
        f"{cluster.name} has no tag by which its costs can be found",
        code="no_cost_tag",
        hint=f"tag it: aws sagemaker add-tags --resource-arn {cluster.arn} --tags Key={DEFAULT_KEY},Value={cluster.name}, "
        f"then activate the tag {_CONSOLE}; or name another tag with --tag KEY=VALUE",
        detail={"field": "tag"},
    )


async def ask_aws(aws: Aws, cluster: str, tag: CostTag, today: date, currency: str) -> Bill:
    """Ask Cost Explorer for the bill: two requests, or three if there are no costs.

    Args:
        aws: AWS in the cluster's partition.
        cluster: The cluster's name.
        tag: Its tag.
        today: The day.
        currency: The currency to show if there are costs in several.

    Raises:
        HyperpodError: AWS has not answered with the costs (see `aws.errors`).
    """
    paid = Paid()
    begin, next_month = month_of(today)
    end = today + timedelta(days=1)
    costs = await read_costs(aws, paid, tag, begin, end)
    bill = Bill(cluster, tag, begin, end, time.time())
    if not costs.amounts:
        note = await _why_nothing(aws, paid, tag)
        return replace(bill, paid_requests=paid.requests, notes=(note,))
    bill = _with_costs(bill, costs, currency)
    return await _with_forecast(aws, paid, bill, today, next_month)


def _with_costs(bill: Bill, costs: Costs, currency: str) -> Bill:
    chosen = currency if currency in costs.amounts else min(costs.amounts)
    days = costs.days(chosen)
    rows = costs.rows(chosen)
    notes = [
        f"AWS also has costs of {sum(amounts.values()):.2f} {other}, which are not included"
        for other, amounts in sorted(costs.amounts.items())
        if other != chosen
    ]
    if costs.estimated_since is not None:
        notes.append(f"AWS may still change the amounts from {costs.estimated_since} on")
    if days[-1].day < bill.end - timedelta(days=1):
        notes.append(f"AWS has no costs after {days[-1].day}; they arrive up to a day late")
    return replace(
        bill,
        currency=chosen,
        amount=sum(day.amount for day in days),
        estimated=costs.estimated_since is not None,
        rows=rows,
        days=days,
        node_hours_paid=sum(row.hours or 0.0 for row in rows),
        notes=tuple(notes),
    )


async def _with_forecast(aws: Aws, paid: Paid, bill: Bill, today: date, end: date) -> Bill:
    """The bill with the forecast for the month: the days before today, and what AWS expects from today on."""
    note = None
    forecast = None
    try:
        expected = await read_forecast(aws, paid, bill.tag, today, end)
        if expected is None:
            note = "AWS has too little data for a forecast"
        elif expected[1] != bill.currency:
            note = f"the forecast of AWS is in {expected[1]}, so it is not shown"
        else:
            forecast = expected[0] + sum(day.amount for day in bill.days if day.day < today)
    except HyperpodError as error:
        note = f"AWS did not return a forecast: {error}"
    notes = (*bill.notes, *([note] if note else []))
    return replace(bill, forecast=forecast, notes=notes, paid_requests=paid.requests)


async def _why_nothing(aws: Aws, paid: Paid, tag: CostTag) -> str:
    """Why AWS has no costs for a tag."""
    nothing = f"AWS has no costs this month for the tag {tag}"
    try:
        status = await tag_status(aws, paid, tag.key)
    except HyperpodError as error:
        return f"{nothing}; whether the tag is active for cost allocation is unknown: {error}"
    if status == "Active":
        return f"{nothing}; costs arrive up to a day late, and a tag counts from the day of its activation on"
    if status is None:
        return f"{nothing}, because the billing does not know the tag {tag.key} yet: it appears up to a day after a resource gets it; then activate it {_CONSOLE}"
    return f"{nothing}, because the tag {tag.key} is not active for cost allocation; activate it {_CONSOLE}"


def _is_fresh(bill: Bill, today: date) -> bool:
    return 0 <= time.time() - bill.asked_at < TTL_S and bill.begin == month_of(today)[0]
