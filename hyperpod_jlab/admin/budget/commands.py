"""``hpj admin budget``: a monthly AWS budget with alerts for a HyperPod cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.admin.budget.service import BudgetRequest, apply_budget, plan_budget
from hyperpod_jlab.cli.group import Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json, print_notes
from hyperpod_jlab.cli.parameters import CLUSTER, region_option
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError

if TYPE_CHECKING:
    from hyperpod_jlab.admin.budget.models import BudgetPlan, BudgetStep
    from hyperpod_jlab.run.services import Hyperpod

_MODULE = "admin.budget.commands"

_HELP = """\
Set up a monthly AWS budget for a HyperPod cluster: AWS sends messages when its costs reach some percentages of an amount. A budget stops nothing.

'plan' shows what would change, 'apply' does it. Applying again changes nothing. 'destroy' removes the budget.
"""

_PLAN = """\
Show what would change. Change nothing.

With --account and --gpu-hours, also show how to limit an account in Slurm's accounting. For a cluster on EKS, also list the teams' quotas.
"""


@click.group(
    "budget",
    cls=LazyGroup,
    sections=(
        Section(
            "Commands",
            (
                Entry("plan", _MODULE, "Show what would change. Change nothing."),
                Entry("apply", _MODULE, "Create or change the budget."),
                Entry("destroy", _MODULE, "Remove the budget."),
            ),
        ),
    ),
    help=_HELP,
    examples=(
        "hpj admin budget plan ml-cluster --amount 5000 --email team@example.com",
        "hpj admin budget destroy ml-cluster",
    ),
)
def budget() -> None:
    """Budgets."""


_OPTIONS = (
    click.argument("cluster", type=CLUSTER),
    click.option("--amount", type=float, required=True, help="Amount of a month, in US dollars."),
    click.option(
        "--email", "emails", multiple=True, metavar="ADDRESS", help="Who gets the alerts."
    ),
    click.option(
        "--sns", "topics", multiple=True, metavar="ARN", help="SNS topic that gets the alerts."
    ),
    click.option(
        "--at",
        multiple=True,
        type=float,
        default=(80.0, 100.0),
        show_default=True,
        metavar="PERCENT",
        help="Alert when the costs reach this percentage of the amount.",
    ),
    click.option(
        "--forecast",
        multiple=True,
        type=float,
        default=(100.0,),
        show_default=True,
        metavar="PERCENT",
        help="Alert when AWS expects this percentage by the end of the month.",
    ),
    click.option(
        "--tag",
        metavar="KEY=VALUE",
        help="The tag by which AWS finds the cluster's costs. Default: ClusterName, or the one whose value is the cluster's name.",
    ),
    click.option("--account", metavar="NAME", help="Slurm account to limit."),
    click.option("--gpu-hours", type=float, metavar="HOURS", help="Its limit in GPU-hours."),
    region_option,
)


def _options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(
    cls=HpjCommand,
    help=_PLAN,
    examples=(
        "hpj admin budget plan ml-cluster --amount 5000 --email team@example.com --at 50 --at 90",
        "hpj admin budget plan ml-slurm --amount 5000 --email team@example.com --account research --gpu-hours 1000",
    ),
)
@_options
def plan(**options: Any) -> None:
    """Show a plan."""
    _show(_planned(BudgetRequest(**options)))


@click.command(
    cls=HpjCommand,
    help="Create the budget, or change it to match the options. Show the plan first and ask for confirmation.",
    examples=("hpj admin budget apply ml-cluster --amount 5000 --email team@example.com --yes",),
)
@_options
@click.option("--apply-slurm", is_flag=True, help="Also set the limit of the Slurm account.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def apply(apply_slurm: bool, yes: bool, **options: Any) -> None:
    """Apply a plan."""
    if apply_slurm and options["account"] is None:
        raise InvalidInputError(
            "--apply-slurm needs --account and --gpu-hours",
            code="usage",
            detail={"field": "apply_slurm"},
        )
    _carry_out(BudgetRequest(**options), yes, slurm=apply_slurm)


@click.command(
    cls=HpjCommand,
    help="Remove the budget of a cluster, with its alerts. A budget that hpj did not make stays.",
    examples=("hpj admin budget destroy ml-cluster --yes",),
)
@click.argument("cluster", type=CLUSTER)
@region_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def destroy(cluster: str, region: str | None, yes: bool) -> None:
    """Remove the budget."""
    _carry_out(BudgetRequest(cluster, region), yes, slurm=False)


def _planned(request: BudgetRequest) -> BudgetPlan:
    async def read(services: Hyperpod) -> BudgetPlan:
        found, _ = await plan_budget(services, request)
        return found

    return with_services(read, asking=True)


def _carry_out(request: BudgetRequest, yes: bool, *, slurm: bool) -> None:
    shown = _planned(request)
    as_json = invocation().as_json
    if not as_json:
        _show(shown)
    limit = shown.account_limit
    sets_limit = slurm and limit is not None and not limit.is_set
    count = len(shown.changes) + sets_limit
    if count and not (yes or _confirmed(count)):
        return

    def done(step: BudgetStep) -> None:
        if not as_json:
            print(printable(f"done: {step.kind} {step.target}"))

    if count:
        with_services(
            lambda services: apply_budget(services, request, shown, done, slurm=sets_limit)
        )
    if as_json:
        print_json(shown)
    elif sets_limit and limit is not None:
        print(printable(f"done: limit of the account {limit.account}"))


def _confirmed(count: int) -> bool:
    """Whether the user confirms it.

    Raises:
        InvalidInputError: The user cannot be asked, because this is not a terminal.
    """
    changes = "1 change" if count == 1 else f"{count} changes"
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            f"changes need confirmation; to do: {changes}",
            code="not_confirmed",
            hint="confirm with --yes; 'hpj admin budget plan' shows them",
        )
    if click.confirm(f"Make {changes}?", err=True):
        return True
    print("nothing was done", file=sys.stderr)
    return False


_SIGNS = {"create": "+", "change": "~", "delete": "-", "keep": "="}


def _show(shown: BudgetPlan) -> None:
    if invocation().as_json:
        print_json(shown)
        return
    for step in shown.steps:
        print(printable(f"{_SIGNS[step.kind]} {step.target}: {step.detail}"))
    if not shown.steps:
        print("no budget")
    if (limit := shown.account_limit) is not None:
        current = "no limit" if limit.current_gpu_hours is None else f"{limit.current_gpu_hours:,g}"
        print()
        print(f"Slurm account {limit.account}: GPU-hours: {current} -> {limit.gpu_hours:,g}")
        for command in limit.commands:
            print(printable(f"  {command}"))
    if shown.quotas:
        print()
    for quota in shown.quotas:
        parts = ", ".join(
            f"{one.count:g} {one.instance_type}" if one.count is not None else one.instance_type
            for one in quota.allocated
        )
        print(printable(f"quota of the team {quota.team}: {parts or '-'} ({quota.state})"))
    print_notes([*shown.notes, *(limit.notes if limit is not None else ())])
