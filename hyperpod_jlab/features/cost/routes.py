"""Requests about cost and usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.features.cost.models import UsageReport
from hyperpod_jlab.features.cost.service import read_usage
from hyperpod_jlab.run.cost import RunCost, read_run_cost
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import CommaSeparated, RequestModel


class UsageQuery(RequestModel):
    """What is counted, and in which period."""

    by: Literal["user", "account", "queue", "notebook", "cluster"] = "user"
    """What is told apart."""
    begin: str
    """The period's begin, ISO 8601."""
    end: str | None = None
    """The period's end, ISO 8601. Default: now."""
    cluster: Annotated[list[str], CommaSeparated, Field(default_factory=list, max_length=100)]
    """The clusters. Default: all that are configured."""


async def show_cost(call: Call, run_id: str) -> RunCost:
    """Get what a run has cost so far, in all its attempts."""
    return await read_run_cost(await call.hyperpod(), run_id)


async def report_usage(call: Call, query: UsageQuery) -> UsageReport:
    """Get who used how many node-hours and GPU-hours of the clusters, and what they cost, day by day."""
    begin = _moment("begin", query.begin)
    end = None if query.end is None else _moment("end", query.end)
    return await read_usage(await call.hyperpod(), query.by, begin, end, query.cluster)


def _moment(field: str, text: str) -> float:
    """Unix seconds of an ISO 8601 time; without an offset it is in UTC.

    Raises:
        InvalidInputError: It is none.
    """
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInputError(
            f"{field} must be a time such as 2026-11-01T00:00:00Z", detail={"field": field}
        ) from error
