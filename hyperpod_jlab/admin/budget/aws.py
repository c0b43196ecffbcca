"""Requests to AWS Budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.admin.budget.models import OUR_TAG, Alert, Budget, BudgetStep, Subscriber
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import Arn
from hyperpod_jlab.core.errors import ConflictError, NotFoundError


async def read_budget(aws: Aws, place: Arn, name: str) -> Budget | None:
    """A budget with its alerts; None if no budget has this name.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    common = {"AccountId": place.account, "BudgetName": name}
    try:
        description = (await aws.call("budgets", "DescribeBudget", **common))["Budget"]
    except NotFoundError:
        return None
    alerts = {}
    async for page in aws.pages("budgets", "DescribeNotificationsForBudget", **common):
        for notification in page["Notifications"]:
            alert = Alert(str(notification["NotificationType"]), float(notification["Threshold"]))
            alerts[alert] = await _subscribers(aws, {**common, "Notification": notification})
    # AWS adjusts some budgets by itself; they have no fixed amount. Ours always have one.
    limit = description.get("BudgetLimit", {"Amount": "0", "Unit": "USD"})
    tags = await aws.call(
        "budgets",
        "ListTagsForResource",
        ResourceARN=f"arn:{place.partition}:budgets::{place.account}:budget/{name}",
    )
    return Budget(
        name,
        float(limit["Amount"]),
        str(limit["Unit"]),
        description.get("CostFilters"),
        alerts,
        is_ours=any(one["Key"] == OUR_TAG for one in tags.get("ResourceTags", ())),
    )


async def do_step(aws: Aws, step: BudgetStep) -> None:
    """Do a step of a plan. What another admin has done meanwhile counts as done.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    if step.call is None:
        return
    operation, parameters = step.call
    try:
        await aws.call("budgets", operation, **parameters)
    except ConflictError:
        if operation != "CreateNotification":
            raise
    except NotFoundError:
        if not operation.startswith("Delete"):
            raise


async def _subscribers(aws: Aws, alert: Mapping[str, Any]) -> tuple[Subscriber, ...]:
    return tuple(
        sorted(
            [
                Subscriber(str(one["SubscriptionType"]), str(one["Address"]))
                async for page in aws.pages(
                    "budgets", "DescribeSubscribersForNotification", **alert
                )
                for one in page["Subscribers"]
            ]
        )
    )
