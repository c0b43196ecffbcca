"""``hpj bill``: what AWS charges for a HyperPod cluster this month."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.cost import format_hours, money
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_json, print_notes, print_table
from hyperpod_jlab.cli.parameters import cluster_argument, region_option
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.quantities import format_duration
from hyperpod_jlab.features.cost.bill import NOT_ASKED, read_compared_bill
from hyperpod_jlab.features.cost.bill_models import PRICE_OF_REQUEST

if TYPE_CHECKING:
    from hyperpod_jlab.features.cost.bill_models import BillRow, ComparedBill

_HELP = """\
Show what AWS charges for a HyperPod cluster this month: by instance type, by day, and as a forecast for the whole month.

The numbers are from Cost Explorer. AWS charges $0.01 for each request to it; the command needs two or three and asks you before. The answer is kept for six
hours.

AWS finds the costs by a tag of the cluster, which must be active for cost allocation. Default: the tag ClusterName, or the one whose value is the cluster's
name.
"""


@click.command(
    cls=HpjCommand,
    help=_HELP,
    examples=("hpj bill ml-cluster", "hpj bill ml-cluster --tag team=vision --yes --json"),
)
@cluster_argument
@region_option
@click.option("--tag", metavar="KEY=VALUE", help="The tag by which AWS finds the costs.")
@click.option("--refresh", is_flag=True, help="Ask AWS even if there is an answer in the cache.")
@click.option("--yes", is_flag=True, help="Do not ask whether paid requests may be made.")
def bill(
    cluster: str | None, region: str | None, tag: str | None, refresh: bool, yes: bool
) -> None:
    """Show the bill."""

    def read(*, ask: bool) -> ComparedBill:
        return with_services(
            lambda services: read_compared_bill(
                services, cluster, region, tag=tag, ask=ask, refresh=refresh
            ),
            asking=True,
        )

    try:
        found = read(ask=yes)
    except HyperpodError as error:
        if error.code != NOT_ASKED or not _confirmed(error):
            raise
        found = read(ask=True)
    if invocation().as_json:
        print_json(found)
    else:
        _print(found)


def _confirmed(error: HyperpodError) -> bool:
    """Whether the user agrees to paid requests; False if there is no terminal to ask on.

    Raises:
        InvalidInputError: The user declines.
    """
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return False
    message = f"{error.message[0].upper()}{error.message[1:]}"
    if not click.confirm(f"{message}. Continue?", err=True):
        raise InvalidInputError("AWS was not asked", code="not_confirmed")
    return True


def _print(found: ComparedBill) -> None:
    currency = found.currency or ""
    if found.amount is not None:
        text = f"{found.cluster}: {found.amount:,.2f} {currency} since {found.begin}"
        if found.forecast is not None:
            text += f", {found.forecast:,.2f} {currency} expected for the month"
        print(printable(text))
        if (budget := found.budget) is not None:
            spent = money(budget.spent, budget.currency)
            print(f"budget of the month: {spent} of {money(budget.limit, budget.currency)} spent")
        print()
        titles = ("INSTANCE TYPE", "NODE HOURS", currency)
        print_table(Table(titles, [_cells(row) for row in found.rows]))
        print()
        _print_count(found, currency)
        days = [(str(day.day), f"{day.amount:,.2f}") for day in found.days]
        print_table(Table(("DAY", currency), days))
    age = format_duration(max(0.0, time.time() - found.asked_at))
    cost = found.paid_requests * PRICE_OF_REQUEST
    about = f"AWS was asked {age} ago with {found.paid_requests} paid requests (${cost:.2f}), by the tag {found.tag}"
    print_notes([about, *found.notes])


def _print_count(found: ComparedBill, currency: str) -> None:
    """Our own count beside the bill, and the nodes that no job had."""
    if found.counted_node_hours is None:
        return
    paid, used = format_hours(found.node_hours_paid), format_hours(found.counted_node_hours)
    print(f"{paid} node-hours are paid; jobs had {used}")
    rows = [
        (
            row.instance_type,
            format_hours(row.paid_hours),
            format_hours(row.used_hours),
            format_hours(row.idle_hours),
            "-" if row.amount is None else f"{row.amount:,.2f}",
        )
        for row in found.idle
    ]
    print_table(Table(("IDLE NODES", "PAID", "ALLOCATED", "IDLE", currency), rows))
    print()


def _cells(row: BillRow) -> tuple[str, str, str]:
    hours = "-" if row.hours is None else f"{row.hours:,.1f}"
    return row.instance_type or "other", hours, f"{row.amount:,.2f}"
