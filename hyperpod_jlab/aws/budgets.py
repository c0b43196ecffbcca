"""What is spent of a HyperPod cluster's AWS budget. Requests are free; AWS updates the numbers a few times a day."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import parse_arn
from hyperpod_jlab.core.errors import DeniedError, Error, NotFoundError, UnreachableError
from hyperpod_jlab.storage.cache_file import read_cache, write_cache

_FILE = "budgets.json"
_TTL_S = 3600.0
"""Seconds for which an answer is cached, also "no budget" and "access denied"."""

_UNREACHABLE_TTL_S = 600.0
"""Seconds until AWS is asked again after it did not answer: some VPCs cannot reach Budgets."""


@dataclass(frozen=True)
class Spending:
    """What is spent of a budget in this month.

    Attributes:
        limit: The amount of a month.
        spent: What AWS has counted against it.
        currency: The currency of both, as ISO 4217.
    """

    limit: float
    spent: float
    currency: str


@dataclass(frozen=True)
class _Answer:
    read_at: float
    spending: Spending | None = None
    problem: Error | None = None

    @property
    def is_fresh(self) -> bool:
        ttl = _TTL_S if self.problem is None else _UNREACHABLE_TTL_S
        return 0 <= time.time() - self.read_at < ttl


@cache
def _kind() -> TypeAdapter[dict[str, _Answer]]:
    return TypeAdapter(dict[str, _Answer])


def budget_name(cluster: str) -> str:
    """The name of the budget that `hpj admin budget` makes for a cluster."""
    return f"hyperpod-jlab-{cluster}"


async def read_spending(cluster_arn: str, cluster: str) -> Spending | None:
    """What is spent of a cluster's budget; None if it has none, or if this user may not see it.

    Args:
        cluster_arn: The cluster's ARN.
        cluster: Its name.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    cached = await asyncio.to_thread(read_cache, _FILE, _kind()) or {}
    answers = {key: one for key, one in cached.items() if one.is_fresh}
    if cluster_arn not in answers:
        now = time.time()
        try:
            answer = _Answer(now, await _read(cluster_arn, cluster))
        except UnreachableError as error:
            answer = _Answer(now, problem=error.shape)
        answers[cluster_arn] = answer
        await asyncio.to_thread(write_cache, _FILE, _kind(), answers)
    if (problem := answers[cluster_arn].problem) is not None:
        raise UnreachableError(
            problem.message, code=problem.code, hint=problem.hint, detail=problem.detail
        )
    return answers[cluster_arn].spending


async def _read(cluster_arn: str, cluster: str) -> Spending | None:
    place = parse_arn(cluster_arn)
    if place is None:
        return None
    aws = Aws(place.region, fail_fast=True)  # a submit must not wait long for it
    try:
        answer = await aws.call(
            "budgets", "DescribeBudget", AccountId=place.account, BudgetName=budget_name(cluster)
        )
    except (DeniedError, NotFoundError):
        return None
    budget = answer["Budget"]
    # A budget without a fixed amount has no limit; without costs nothing is calculated yet.
    limit, spent = budget.get("BudgetLimit"), budget.get("CalculatedSpend", {}).get("ActualSpend")
    if limit is None:
        return None
    amount = float(spent["Amount"]) if spent else 0.0
    return Spending(float(limit["Amount"]), amount, str(limit["Unit"]))
