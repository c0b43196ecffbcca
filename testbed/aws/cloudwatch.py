"""CloudWatch: which metrics there are, and what was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.telemetry import Metric

_METRICS_PAGE = 500
_MOST_QUERIES = 500
_ID = re.compile(r"[a-z][a-zA-Z0-9_]*")
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": fmean,
    "Sum": sum,
    "Minimum": min,
    "Maximum": max,
    "SampleCount": len,
}


def list_metrics(request: Request) -> dict[str, Any]:
    given = request.given
    found = [metric for metric in request.account.telemetry.measured if _asked(metric, request)]
    shown, following = page(
        found,
        lambda metric: [metric.namespace, metric.name, [list(pair) for pair in metric.dimensions]],
        {**given, "MaxResults": _METRICS_PAGE},
    )
    return {
        "Metrics": [
            {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
            }
            for metric in shown
        ],
        **following,
    }


def get_metric_data(request: Request) -> dict[str, Any]:
    given = request.given
    queries = given["MetricDataQueries"]
    _check(queries, given)
    results = [_result(query, request) for query in queries]
    most = given.get("MaxDatapoints", request.account.telemetry.points)
    return _cut(results, given.get("NextToken"), most)


def _cut(results: list[dict[str, Any]], token: str | None, most: int) -> dict[str, Any]:
    """A page of so many points: of each metric a part, which may be none."""
    begin, at, shown = int(token or 0), 0, []
    for result in results:
        low, high = max(begin - at, 0), max(begin + most - at, 0)
        whole = high >= len(result["Values"])
        shown.append(
            {
                **result,
                "Timestamps": result["Timestamps"][low:high],
                "Values": result["Values"][low:high],
                "StatusCode": "Complete" if whole else "PartialData",
            }
        )
        at += len(result["Values"])
    following = {"NextToken": str(begin + most)} if begin + most < at else {}
    return {"MetricDataResults": shown, "Messages": [], **following}


def _asked(metric: Metric, request: Request) -> bool:
    given, dimensions = request.given, dict(metric.dimensions)
    return (
        metric.region == request.region
        and given.get("Namespace", metric.namespace) == metric.namespace
        and given.get("MetricName", metric.name) == metric.name
        and all(
            one["Name"] in dimensions and one.get("Value", dimensions[one["Name"]]) == dimensions[one["Name"]]
            for one in given.get("Dimensions", [])
        )
    )


def _check(queries: Sequence[dict[str, Any]], given: dict[str, Any]) -> None:
    names = [query["Id"] for query in queries]
    if not 0 < len(queries) <= _MOST_QUERIES:
        raise _invalid(f"The parameter MetricDataQueries must have 1 to {_MOST_QUERIES} items.")
    if len(set(names)) < len(names) or not all(map(_ID.fullmatch, names)):
        raise _invalid("The values of the parameter Id must be unique and begin with a-z.")
    if given["StartTime"] >= given["EndTime"]:
        raise _invalid("The parameter StartTime must be less than the parameter EndTime.")
    for query in queries:
        if "MetricStat" not in query:
            raise ApiError("TestbedHasNone", "testbed/aws has no expressions on metrics", 501)
        period, statistic = query["MetricStat"]["Period"], query["MetricStat"]["Stat"]
        if period not in {1, 5, 10, 20, 30} and period % 60:
            raise _invalid(f"The parameter Period {period} must be a multiple of 60.")
        if statistic not in _STATISTICS:
            raise ApiError("TestbedHasNone", f"testbed/aws has no statistic {statistic}", 501)


def _result(query: dict[str, Any], request: Request) -> dict[str, Any]:
    asked, given = query["MetricStat"], request.given
    metric = asked["Metric"]
    named = tuple(sorted((one["Name"], one["Value"]) for one in metric.get("Dimensions", [])))
    known = request.account.telemetry.measured.get(
        Metric(request.region, metric["Namespace"], metric["MetricName"], named), []
    )
    periods = defaultdict[int, list[float]](list)
    for moment, value in known:
        if given["StartTime"] <= moment.timestamp() < given["EndTime"]:
            periods[int(moment.timestamp() // asked["Period"] * asked["Period"])].append(value)
    downward = given.get("ScanBy", "TimestampDescending") == "TimestampDescending"
    times = sorted(periods, reverse=downward)
    calculate = _STATISTICS[asked["Stat"]]
    return {
        "Id": query["Id"],
        "Label": query.get("Label", metric["MetricName"]),
        "Timestamps": [datetime.fromtimestamp(time, UTC) for time in times],
        "Values": [float(calculate(periods[time])) for time in times],
        "StatusCode": "Complete",
    }


def _invalid(message: str) -> ApiError:
    return ApiError("ValidationError", message)


SERVICE = Service(
    "cloudwatch", {"ListMetrics": list_metrics, "GetMetricData": get_metric_data}, lambda _: Resource(None, "*")
)
