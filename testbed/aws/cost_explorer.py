"""Cost Explorer: what was billed by day and usage type, a forecast, and which tags are active for cost allocation."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from testbed.aws.bills import CostLine
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError

GROUPS_PER_PAGE = 40


def get_cost_and_usage(request: Request) -> dict[str, Any]:
    given, bills = request.given, request.account.bills
    begin, end = _period(given)
    if given["Granularity"] != "DAILY" or given.get("GroupBy") != [
        {"Type": "DIMENSION", "Key": "USAGE_TYPE"}
    ]:
        raise ApiError("TestbedHasNone", "testbed/aws only knows days by usage type", 501)
    wanted = given["Filter"]["Tags"]
    found = [
        one
        for one in bills.lines
        if begin.isoformat() <= one.day < end.isoformat()
        and bills.cost_tags.get(wanted["Key"]) == "Active"
        and one.tags.get(wanted["Key"]) in wanted["Values"]
    ]
    days = [(begin + timedelta(number)).isoformat() for number in range((end - begin).days)]
    at = int(given.get("NextPageToken", "0"))
    shown = found[at : at + GROUPS_PER_PAGE]
    results = [
        {
            "TimePeriod": {"Start": day, "End": _next(day)},
            "Total": {},
            "Groups": [_group(one) for one in shown if one.day == day],
            "Estimated": day >= bills.closed_until,
        }
        for day in days
    ]
    more = {"NextPageToken": str(at + GROUPS_PER_PAGE)} if len(found) > at + GROUPS_PER_PAGE else {}
    return {"ResultsByTime": results, "GroupDefinitions": given["GroupBy"], **more}


def get_cost_forecast(request: Request) -> dict[str, Any]:
    begin, end = _period(request.given)
    per_day = request.account.bills.per_day
    if per_day is None:
        raise ApiError(
            "DataUnavailableException",
            "Insufficient amount of historical data to generate forecast.",
        )
    count = (end - begin).days
    days = [(begin + timedelta(number)).isoformat() for number in range(count)]
    return {
        "Total": {"Amount": str(per_day * count), "Unit": "USD"},
        "ForecastResultsByTime": [
            {"TimePeriod": {"Start": day, "End": _next(day)}, "MeanValue": str(per_day)}
            for day in days
        ],
    }


def list_cost_allocation_tags(request: Request) -> dict[str, Any]:
    keys = request.given.get("TagKeys")
    found = [
        {"TagKey": key, "Type": "UserDefined", "Status": status}
        for key, status in request.account.bills.cost_tags.items()
        if keys is None or key in keys
    ]
    shown, following = page(found, lambda one: [one["TagKey"]], request.given)
    return {"CostAllocationTags": shown, **following}


def _period(given: dict[str, Any]) -> tuple[date, date]:
    period = given["TimePeriod"]
    begin, end = date.fromisoformat(period["Start"]), date.fromisoformat(period["End"])
    if begin >= end:
        raise ApiError(
            "ValidationException", "Start date (and hour) should be before end date (and hour)"
        )
    return begin, end


def _group(line: CostLine) -> dict[str, Any]:
    return {
        "Keys": [line.usage_type],
        "Metrics": {
            "UnblendedCost": {"Amount": str(line.amount), "Unit": line.currency},
            "UsageQuantity": {"Amount": str(line.quantity), "Unit": "N/A"},
        },
    }


def _next(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(1)).isoformat()


SERVICE = Service(
    "ce",
    {
        "GetCostAndUsage": get_cost_and_usage,
        "GetCostForecast": get_cost_forecast,
        "ListCostAllocationTags": list_cost_allocation_tags,
    },
    lambda _: Resource(None, "*"),
)
