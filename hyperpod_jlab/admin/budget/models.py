"""Budgets of HyperPod clusters: the desired and the actual one, and the steps from one to the other. Planning is pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_jlab.aws.budgets import budget_name
from hyperpod_jlab.core.cluster import AccountLimit
from hyperpod_jlab.core.errors import ConflictError, InvalidInputError
from hyperpod_jlab.core.wire import HIDDEN, Wire
from hyperpod_jlab.features.cost.bill_models import CostTag
from hyperpod_jlab.features.governance.models import TeamQuota

OUR_TAG = "hyperpod-jlab"
"""The tag by which we know budgets that we made."""

MAX_ALERTS, MAX_EMAILS, MAX_TOPICS = 10, 10, 1
"""Limits of AWS Budgets: alerts of a budget, and subscribers of an alert (API reference, Notification)."""

_MAX_PERCENT = 1_000_000
_MAX_AMOUNT = 1e12
_EMAIL = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+")
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]{1,256}(\.fifo)?")


@dataclass(frozen=True, order=True)
class Alert:
    """An alert: at which percentage of the budget, of actual or of forecast costs, AWS sends messages."""

    kind: str
    percent: float

    def __str__(self) -> str:
        kind = "forecast" if self.kind == "FORECASTED" else "actual"
        return f"alert at {self.percent:g} % in {kind} costs"


@dataclass(frozen=True, order=True)
class Subscriber:
    """Who gets the messages: an e-mail address or an SNS topic."""

    kind: str
    address: str


@dataclass(frozen=True)
class Budget:
    """A monthly budget.

    Attributes:
        name: Its name.
        amount: The amount of a month.
        currency: The currency: USD, in China CNY.
        cost_filter: The filter in the form of the API; None: not reported.
        alerts: The subscribers of each alert.
        is_ours: Whether `hpj` made it.
    """

    name: str
    amount: float
    currency: str
    cost_filter: Mapping[str, Sequence[str]] | None
    alerts: Mapping[Alert, tuple[Subscriber, ...]]
    is_ours: bool = True


@dataclass(frozen=True)
class BudgetStep(Wire):
    """One step of a plan.

    Attributes:
        kind: What is done; ``keep``: it is as it should be.
        target: The budget, or an alert of it.
        detail: What it becomes.
        call: The operation of AWS Budgets, with its input.
    """

    kind: Literal["create", "change", "delete", "keep"]
    target: str
    detail: str = ""
    call: tuple[str, Mapping[str, Any]] | None = field(default=None, metadata=HIDDEN)


@dataclass(frozen=True)
class BudgetPlan:
    """What would change for a cluster's budget.

    Attributes:
        cluster: The HyperPod cluster's name.
        tag: The tag by which AWS finds its costs; null to remove the budget.
        steps: The steps.
        account_limit: The limit of a Slurm account, if one is asked for.
        quotas: The teams' quotas of a cluster on EKS, which are only shown.
        notes: What else to know, a sentence each.
    """

    cluster: str
    tag: CostTag | None = None
    steps: tuple[BudgetStep, ...] = ()
    account_limit: AccountLimit | None = None
    quotas: tuple[TeamQuota, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> list[BudgetStep]:
        """The steps that change something."""
        return [step for step in self.steps if step.call is not None]


def cost_filter(tag: CostTag) -> dict[str, list[str]]:
    """The filter of a tag, as AWS Budgets writes it: tags of AWS begin with ``aws:`` already, the others with ``user:``.

    `CostFilters` rather than the newer `FilterExpression`, which the boto3 of SageMaker's images does not know.
    """
    owner = "" if tag.key.startswith("aws:") else "user:"
    return {"TagKeyValue": [f"{owner}{tag.key}${tag.value}"]}


def desired_budget(
    cluster: str,
    tag: CostTag,
    amount: float,
    currency: str,
    *,
    emails: Sequence[str] = (),
    topics: Sequence[str] = (),
    at: Sequence[float] = (),
    forecast: Sequence[float] = (),
) -> Budget:
    """The budget that an admin asks for.

    Args:
        cluster: The HyperPod cluster's name.
        tag: Its tag.
        amount: The amount of a month.
        currency: The currency.
        emails: E-mail addresses for the alerts.
        topics: ARNs of SNS topics for the alerts.
        at: Percentages of the budget in actual costs at which AWS sends messages.
        forecast: The same of forecast costs.

    Raises:
        InvalidInputError: A value is not valid.
    """
    if not (math.isfinite(amount) and 0 < amount <= _MAX_AMOUNT):
        raise _invalid("amount", f"must be more than 0, not {amount:g}", "such as --amount 5000")
    for field_name, values, pattern, hint in (
        ("email", emails, _EMAIL, "such as --email team@example.com"),
        ("sns", topics, _TOPIC, "such as --sns arn:aws:sns:us-east-1:111122223333:budgets"),
    ):
        for value in values:
            if not pattern.fullmatch(value):
                raise _invalid(field_name, f"'{value[:60]}' is not valid", hint)
    subscribers = tuple(
        sorted(
            {Subscriber("EMAIL", one) for one in emails}
            | {Subscriber("SNS", one) for one in topics}
        )
    )
    counts = [sum(one.kind == kind for one in subscribers) for kind in ("EMAIL", "SNS")]
    if not subscribers:
        raise _invalid(
            "email", "is missing, so AWS could not send the alerts", "add --email or --sns"
        )
    if counts[0] > MAX_EMAILS or counts[1] > MAX_TOPICS:
        raise _invalid(
            "email" if counts[0] > MAX_EMAILS else "sns",
            f"AWS sends an alert to at most {MAX_EMAILS} e-mail addresses and {MAX_TOPICS} SNS topic",
            "subscribe the others to the SNS topic",
        )
    alerts = {Alert("ACTUAL", one) for one in at} | {Alert("FORECASTED", one) for one in forecast}
    for alert in alerts:
        if not 0 < alert.percent <= _MAX_PERCENT:
            field_name = "at" if alert.kind == "ACTUAL" else "forecast"
            raise _invalid(
                field_name,
                f"must be more than 0 %, not {alert.percent:g}",
                f"such as --{field_name} 80",
            )
    if not 0 < len(alerts) <= MAX_ALERTS:
        raise _invalid("at", f"a budget has 1 to {MAX_ALERTS} alerts, not {len(alerts)}", None)
    return Budget(
        budget_name(cluster),
        amount,
        currency,
        cost_filter(tag),
        dict.fromkeys(sorted(alerts), subscribers),
    )


def _invalid(field_name: str, message: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(f"--{field_name}: {message}", hint=hint, detail={"field": field_name})


def plan_steps(account: str, actual: Budget | None, desired: Budget | None) -> list[BudgetStep]:
    """The steps from the actual to the desired budget; None stands for no budget.

    Args:
        account: The AWS account's number.
        actual: The budget of this name at AWS.
        desired: The desired one; None: to remove it.

    Raises:
        ConflictError: There is a budget of this name that `hpj` did not make.
    """
    if actual is not None and not actual.is_ours:
        raise ConflictError(
            f"there is a budget {actual.name} that hpj did not make, because it has no tag {OUR_TAG}",
            code="not_ours",
            hint="delete or rename it in the Billing console, under Budgets",
            detail={"budget": actual.name},
        )
    if desired is None:
        return [] if actual is None else [_deletion(account, actual)]
    if actual is None:
        return [_creation(account, desired)]
    return [_update(account, actual, desired), *_alert_steps(account, actual, desired)]


def _deletion(account: str, budget: Budget) -> BudgetStep:
    call = {"AccountId": account, "BudgetName": budget.name}
    detail = f"{_limit(budget)}, with {len(budget.alerts)} alerts"
    return BudgetStep("delete", f"budget {budget.name}", detail, ("DeleteBudget", call))


def _creation(account: str, budget: Budget) -> BudgetStep:
    alerts = [
        {"Notification": _notification(alert), "Subscribers": _subscribers(subscribers)}
        for alert, subscribers in budget.alerts.items()
    ]
    call = {
        "AccountId": account,
        "Budget": _description(budget),
        "NotificationsWithSubscribers": alerts,
        "ResourceTags": [{"Key": OUR_TAG, "Value": "budget"}],
    }
    told = "; ".join(f"{alert} to {_told(who)}" for alert, who in budget.alerts.items())
    detail = f"{_limit(budget)}; {told}"
    return BudgetStep("create", f"budget {budget.name}", detail, ("CreateBudget", call))


def _update(account: str, actual: Budget, desired: Budget) -> BudgetStep:
    target = f"budget {desired.name}"
    same_filter = actual.cost_filter in (None, desired.cost_filter)
    if (actual.amount, actual.currency) == (desired.amount, desired.currency) and same_filter:
        return BudgetStep("keep", target, _limit(desired))
    call = {"AccountId": account, "NewBudget": _description(desired)}
    detail = f"{_limit(actual)} -> {_limit(desired)}"
    return BudgetStep("change", target, detail, ("UpdateBudget", call))


def _alert_steps(account: str, actual: Budget, desired: Budget) -> list[BudgetStep]:
    """The steps for alerts, deletions first, because a budget can have only so many.

    An alert whose subscribers differ is deleted and created again, because an alert can have only one SNS topic.
    """
    steps = _steps_by_alert(account, actual, desired)
    return sorted(steps, key=lambda step: step.kind != "delete")


def _steps_by_alert(account: str, actual: Budget, desired: Budget) -> Iterator[BudgetStep]:
    for alert in sorted({*actual.alerts, *desired.alerts}):
        before, after = actual.alerts.get(alert), desired.alerts.get(alert)
        common = {
            "AccountId": account,
            "BudgetName": desired.name,
            "Notification": _notification(alert),
        }
        if after is not None and before is not None and sorted(before) == sorted(after):
            yield BudgetStep("keep", str(alert), _told(after))
            continue
        if before is not None:
            yield BudgetStep("delete", str(alert), _told(before), ("DeleteNotification", common))
        if after is not None:
            call = {**common, "Subscribers": _subscribers(after)}
            yield BudgetStep("create", str(alert), _told(after), ("CreateNotification", call))


def _description(budget: Budget) -> dict[str, Any]:
    return {
        "BudgetName": budget.name,
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": f"{budget.amount:.2f}", "Unit": budget.currency},
        "CostFilters": budget.cost_filter,
    }


def _notification(alert: Alert) -> dict[str, Any]:
    return {
        "NotificationType": alert.kind,
        "ComparisonOperator": "GREATER_THAN",
        "Threshold": alert.percent,
        "ThresholdType": "PERCENTAGE",
    }


def _subscribers(subscribers: Sequence[Subscriber]) -> list[dict[str, str]]:
    return [{"SubscriptionType": one.kind, "Address": one.address} for one in subscribers]


def _limit(budget: Budget) -> str:
    of = budget.cost_filter or {}
    tags = ", ".join(one for values in of.values() for one in values)
    return f"{budget.amount:,.2f} {budget.currency} a month" + (f" for {tags}" if tags else "")


def _told(subscribers: Sequence[Subscriber]) -> str:
    return ", ".join(one.address for one in subscribers)
