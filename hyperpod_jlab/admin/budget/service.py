"""Plan, apply and remove the budget of a HyperPod cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hyperpod_jlab.admin.budget.aws import do_step, read_budget
from hyperpod_jlab.admin.budget.models import (
    Budget,
    BudgetPlan,
    BudgetStep,
    desired_budget,
    plan_steps,
)
from hyperpod_jlab.aws.budgets import budget_name
from hyperpod_jlab.aws.consoles import cluster_console
from hyperpod_jlab.aws.price_list import price_list_currency
from hyperpod_jlab.aws.studio import parse_arn
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, UnsupportedError
from hyperpod_jlab.engines.protocol import require
from hyperpod_jlab.features.cost.bill import choose_tag
from hyperpod_jlab.features.cost.bill_models import CostTag, parse_tag
from hyperpod_jlab.features.governance.aws import list_quotas

if TYPE_CHECKING:
    from hyperpod_jlab.aws.session import Aws
    from hyperpod_jlab.aws.studio import Arn
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.engines.protocol import AccountLimits
    from hyperpod_jlab.run.services import Hyperpod

_ANY_TAG = CostTag("ClusterName", "")
_NOT_AT_ONCE = "AWS updates the costs of budgets a few times a day, so an alert may come up to a day late; a budget stops nothing"


@dataclass(frozen=True)
class BudgetRequest:
    """What an admin asks for.

    Attributes:
        cluster: The cluster (see `Clusters.resolve_hyperpod`).
        region: Its region.
        tag: The tag by which AWS finds its costs, as ``KEY=VALUE``; default: see `choose_tag`.
        amount: The amount of a month; None: remove the budget.
        emails: E-mail addresses for the alerts.
        topics: ARNs of SNS topics for the alerts.
        at: Percentages in actual costs at which AWS sends messages.
        forecast: The same of forecast costs.
        account: A Slurm account to limit.
        gpu_hours: Its limit in GPU-hours.
    """

    cluster: str
    region: str | None = None
    tag: str | None = None
    amount: float | None = None
    emails: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    at: tuple[float, ...] = ()
    forecast: tuple[float, ...] = ()
    account: str | None = None
    gpu_hours: float | None = None


async def plan_budget(services: Hyperpod, request: BudgetRequest) -> tuple[BudgetPlan, Aws]:
    """What would change, and AWS to change it. Changes nothing.

    Raises:
        InvalidInputError: A value is not valid.
        ConflictError: There is a budget of the same name that `hpj` did not make (``not_ours``).
        HyperpodError: See `aws.errors`.
    """
    given = parse_tag(request.tag) if request.tag is not None else None
    _desired(request, request.cluster, given or _ANY_TAG, "USD")  # wrong values before AWS is asked
    resolved = await services.clusters.resolve_hyperpod(request.cluster, request.region)
    clusters = services.hyperpod_clusters(resolved.region)
    cluster = await clusters.describe(resolved.aws_name)
    place = _place(cluster)
    tag = desired = None
    if request.amount is not None:
        tag = given or choose_tag(cluster, (await clusters.tags(cluster.arn)).rows)
        desired = _desired(request, cluster.name, tag, price_list_currency(cluster.region))
    actual = await read_budget(clusters.aws, place, budget_name(cluster.name))
    steps = tuple(plan_steps(place.account, actual, desired))
    plan = BudgetPlan(cluster.name, tag, steps)
    if desired is not None:
        needed = f"AWS counts costs by the tag {tag} only if it is active for cost allocation, which hpj bill tells"
        plan = replace(plan, notes=(_NOT_AT_ONCE, needed))
        plan = await _with_limits(services, clusters.aws, cluster, request, plan)
    return plan, clusters.aws


def _desired(request: BudgetRequest, cluster: str, tag: CostTag, currency: str) -> Budget | None:
    """The budget that is asked for; None to remove it.

    Raises:
        InvalidInputError: A value is not valid.
    """
    if request.amount is None:
        return None
    return desired_budget(
        cluster,
        tag,
        request.amount,
        currency,
        emails=request.emails,
        topics=request.topics,
        at=request.at,
        forecast=request.forecast,
    )


async def apply_budget(
    services: Hyperpod,
    request: BudgetRequest,
    shown: BudgetPlan,
    done: Callable[[BudgetStep], None],
    *,
    slurm: bool = False,
) -> BudgetPlan:
    """Do the steps of a plan that was shown. Doing them again changes nothing.

    Args:
        services: The services.
        request: What was asked for.
        shown: The plan.
        done: Called after each step.
        slurm: Whether to set the limit of the Slurm account too.

    Raises:
        InvalidInputError: The plan is another one now (``plan_changed``).
        HyperpodError: See `aws.errors`; earlier steps stay done.
    """
    plan, aws = await plan_budget(services, request)
    if plan.steps != shown.steps:
        raise InvalidInputError(
            "the budget has changed since the plan was shown; nothing was done",
            code="plan_changed",
            hint="look at the new plan: hpj admin budget plan",
        )
    for step in plan.changes:
        await do_step(aws, step)
        done(step)
    if slurm and plan.account_limit is not None:
        engine = services.engines.get(await _configured(services, request))
        await _limits(services, engine.name).set_limit(plan.account_limit)
    return plan


async def _with_limits(
    services: Hyperpod, aws: Aws, cluster: HyperpodCluster, request: BudgetRequest, plan: BudgetPlan
) -> BudgetPlan:
    """The plan with the limit of the Slurm account, or the quotas of the cluster on EKS."""
    if (request.account is None) != (request.gpu_hours is None):
        raise InvalidInputError(
            "--account and --gpu-hours belong together",
            code="usage",
            hint="such as --account research --gpu-hours 1000",
            detail={"field": "account"},
        )
    if request.account is not None and request.gpu_hours is not None:
        name = await _configured(services, request)
        limit = await _limits(services, name).account_limit(request.account, request.gpu_hours)
        return replace(plan, account_limit=limit)
    if not cluster.on_eks:
        return plan
    console = cluster_console(cluster.arn, cluster.name) or "the SageMaker console"
    notes = [*plan.notes, f"the teams' quotas are set at {console}, under Task governance"]
    try:
        quotas = await list_quotas(aws, cluster.arn)
    except HyperpodError as error:
        return replace(plan, notes=(*notes, f"the teams' quotas are unknown: {error}"))
    return replace(plan, quotas=tuple(quotas), notes=tuple(notes))


async def _configured(services: Hyperpod, request: BudgetRequest) -> str:
    """The cluster's name in the configuration, by which its scheduler is reached.

    Raises:
        InvalidInputError: It is not configured.
    """
    resolved = await services.clusters.resolve_hyperpod(request.cluster, request.region)
    clusters = services.hyperpod_clusters(resolved.region)
    names = (await clusters.describe(resolved.aws_name)).configured_as
    if not names:
        raise InvalidInputError(
            f"{request.cluster} is not in the configuration, so its accounts cannot be read",
            code="not_configured",
            hint=f"add it: hpj config add {request.cluster}",
            detail={"field": "account"},
        )
    return names[0]


def _limits(services: Hyperpod, name: str) -> AccountLimits:
    engine = services.engines.get(name)
    return require(engine.account_limits, engine, "have no limits of accounts")


def _place(cluster: HyperpodCluster) -> Arn:
    place = parse_arn(cluster.arn)
    if place is None:
        raise UnsupportedError(f"the account of {cluster.name} is unknown", code="no_account")
    return place
