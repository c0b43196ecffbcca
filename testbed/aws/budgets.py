"""AWS Budgets: budgets of an account with their alerts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError

Alert = tuple[str, str, float, str]
"""Type, comparison, threshold and type of the threshold."""


@dataclass
class HeldBudget:
    """A budget: its description, its tags, and the subscribers of its alerts."""

    description: dict[str, Any]
    tags: dict[str, str] = field(default_factory=dict)
    alerts: dict[Alert, list[dict[str, str]]] = field(default_factory=dict)


def monthly_budget(name: str, amount: str) -> HeldBudget:
    """A budget of a month in US dollars, without alerts."""
    kinds = {"BudgetName": name, "BudgetType": "COST", "TimeUnit": "MONTHLY"}
    return HeldBudget({**kinds, "BudgetLimit": {"Amount": amount, "Unit": "USD"}})


def create_budget(request: Request) -> dict[str, Any]:
    given = request.given
    name = given["Budget"]["BudgetName"]
    if name in request.account.budgets:
        raise ApiError("DuplicateRecordException", f"the budget {name} already exists")
    tags = {one["Key"]: one["Value"] for one in given.get("ResourceTags", ())}
    budget = HeldBudget(_checked(given["Budget"]), tags)
    for one in given.get("NotificationsWithSubscribers", ()):
        _add(budget, one["Notification"], one["Subscribers"])
    request.account.budgets[name] = budget
    return {}


def update_budget(request: Request) -> dict[str, Any]:
    budget = _budget(request, request.given["NewBudget"]["BudgetName"])
    budget.description = _checked(request.given["NewBudget"])
    return {}


def describe_budget(request: Request) -> dict[str, Any]:
    spent = {"ActualSpend": {"Amount": "12.5", "Unit": "USD"}}
    return {"Budget": {**_budget(request).description, "CalculatedSpend": spent}}


def delete_budget(request: Request) -> dict[str, Any]:
    _budget(request)
    del request.account.budgets[request.given["BudgetName"]]
    return {}


def describe_notifications(request: Request) -> dict[str, Any]:
    alerts = list(_budget(request).alerts)
    shown, following = page(alerts, list, request.given)
    return {"Notifications": [_notification(one) for one in shown], **following}


def describe_subscribers(request: Request) -> dict[str, Any]:
    subscribers = _subscribers(request)
    shown, following = page(subscribers, lambda one: [one["Address"]], request.given)
    return {"Subscribers": shown, **following}


def create_notification(request: Request) -> dict[str, Any]:
    _add(_budget(request), request.given["Notification"], request.given["Subscribers"])
    return {}


def delete_notification(request: Request) -> dict[str, Any]:
    _subscribers(request)
    del _budget(request).alerts[_alert(request.given["Notification"])]
    return {}


def list_tags(request: Request) -> dict[str, Any]:
    name = request.given["ResourceARN"].rpartition("budget/")[2]
    tags = _budget(request, name).tags
    return {"ResourceTags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _budget(request: Request, name: str | None = None) -> HeldBudget:
    found = request.account.budgets.get(name or request.given["BudgetName"])
    if found is None:
        raise ApiError("NotFoundException", "Unable to get budget: the budget doesn't exist.")
    return found


def _checked(description: dict[str, Any]) -> dict[str, Any]:
    if {"CostFilters", "FilterExpression"} <= set(description):
        raise ApiError("InvalidParameterException", "either FilterExpression or CostFilters")
    return description


def _add(
    budget: HeldBudget, notification: dict[str, Any], subscribers: list[dict[str, str]]
) -> None:
    alert = _alert(notification)
    kinds = [one["SubscriptionType"] for one in subscribers]
    if alert in budget.alerts:
        raise ApiError("DuplicateRecordException", "the notification already exists")
    if len(budget.alerts) == 10:
        raise ApiError("CreationLimitExceededException", "a budget has at most 10 notifications")
    if not kinds or kinds.count("SNS") > 1 or kinds.count("EMAIL") > 10:
        raise ApiError("InvalidParameterException", "1 to 11 subscribers, one SNS topic at most")
    budget.alerts[alert] = subscribers


def _subscribers(request: Request) -> list[dict[str, str]]:
    alerts = _budget(request).alerts
    alert = _alert(request.given["Notification"])
    if alert not in alerts:
        raise ApiError("NotFoundException", "the notification doesn't exist")
    return alerts[alert]


def _alert(notification: dict[str, Any]) -> Alert:
    return (
        notification["NotificationType"],
        notification["ComparisonOperator"],
        float(notification["Threshold"]),
        notification.get("ThresholdType", "PERCENTAGE"),
    )


def _notification(alert: Alert) -> dict[str, Any]:
    kind, comparison, threshold, threshold_type = alert
    return {
        "NotificationType": kind,
        "ComparisonOperator": comparison,
        "Threshold": threshold,
        "ThresholdType": threshold_type,
        "NotificationState": "OK",
    }


def _resource(request: Request) -> Resource:
    given, account = request.given, request.account
    if "ResourceARN" in given:
        return Resource(given["ResourceARN"], given["ResourceARN"])
    described = given.get("Budget", given.get("NewBudget", given))
    name = described["BudgetName"]
    return Resource(name, f"arn:{account.partition}:budgets::{account.account_id}:budget/{name}")


_VIEW, _MODIFY = "budgets:ViewBudget", "budgets:ModifyBudget"

SERVICE = Service(
    "budgets",
    {
        "CreateBudget": create_budget,
        "UpdateBudget": update_budget,
        "DescribeBudget": describe_budget,
        "DeleteBudget": delete_budget,
        "DescribeNotificationsForBudget": describe_notifications,
        "DescribeSubscribersForNotification": describe_subscribers,
        "CreateNotification": create_notification,
        "DeleteNotification": delete_notification,
        "ListTagsForResource": list_tags,
    },
    _resource,
    {
        "CreateBudget": _MODIFY,
        "UpdateBudget": _MODIFY,
        "DeleteBudget": _MODIFY,
        "CreateNotification": _MODIFY,
        "DeleteNotification": _MODIFY,
        "DescribeBudget": _VIEW,
        "DescribeNotificationsForBudget": _VIEW,
        "DescribeSubscribersForNotification": _VIEW,
    },
    {
        "CreateBudget": lambda request: (
            [("budgets:TagResource", _resource(request))]
            if request.given.get("ResourceTags")
            else []
        )
    },
)
"""IAM knows two rights for most of it (service authorization reference of AWS Budgets)."""
