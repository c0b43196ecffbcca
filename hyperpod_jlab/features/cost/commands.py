"""``hpj cost`` and ``hpj usage``."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.cost import format_hours, format_wasted, money, sources
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import Table, print_fields, print_json, print_notes, print_table
from hyperpod_jlab.cli.parameters import CLUSTER, RUN, DayParam
from hyperpod_jlab.features.cost.models import DAY_S, By, csv_rows
from hyperpod_jlab.features.cost.service import MAX_PERIOD_S, read_usage
from hyperpod_jlab.run.cost import RunCost, read_run_cost

if TYPE_CHECKING:
    from hyperpod_jlab.features.cost.models import UsageReport
    from hyperpod_jlab.run.services import Hyperpod

_COST_HELP = """\
Show what a run has cost so far, in all its attempts. An attempt that another one followed counts as wasted.

Prices come from the configuration ([cost.prices]), or from the AWS Price List. If no price is known, only the hours are shown.

RUN is a run id, the beginning of one, or 'last'.
"""


@click.command(cls=HpjCommand, help=_COST_HELP, examples=("hpj cost last", "hpj cost last --json"))
@click.argument("run", type=RUN)
def cost(run: str) -> None:
    """Show a run's cost."""

    async def read(hyperpod: Hyperpod) -> RunCost:
        return await read_run_cost(hyperpod, await find_run(hyperpod, run))

    found = with_services(read, asking=True)
    if invocation().as_json:
        print_json(found)
        return
    print_fields(
        [
            (
                "cost",
                None
                if found.amount is None
                else money(found.amount, found.currency) + sources(found.prices, found.currency),
            ),
            ("node-hours", format_hours(found.node_hours)),
            ("GPU-hours", format_hours(found.gpu_hours)),
            ("wasted", format_wasted(found)),
            ("GPUs busy", None if found.gpu_utilization is None else f"{found.gpu_utilization:.0f} %"),
        ]
    )
    print_notes(found.notes)


_USAGE_HELP = """\
Show who used how many node-hours and GPU-hours, and what they cost. Hours are counted from start to end, whatever the job did in them.

On Slurm the numbers are those of the accounting, for all users that you may see. On other clusters the runs on your storage partition are counted.
Days are those of UTC.
"""


@click.command(
    cls=HpjCommand,
    help=_USAGE_HELP,
    examples=(
        *("hpj usage", "hpj usage --by account --since 7d --cluster ml-slurm"),
        "hpj usage --by user --since 30d --csv > usage.csv",
    ),
)
@click.option(
    "--by",
    type=click.Choice(["user", "account", "queue", "notebook", "cluster"]),
    default="user",
    show_default=True,
    help="What to sum up by.",
)
@click.option(
    "--since",
    type=DayParam(MAX_PERIOD_S),
    default="30d",
    show_default=True,
    help="Count from then on: a duration before now, at most 400d, or a day or time of UTC such as 2026-11-01.",
)
@click.option("--until", type=DayParam(MAX_PERIOD_S), help="Count until then; of a day, until its begin. Default: now.")
@click.option("--cluster", "clusters", type=CLUSTER, multiple=True, help="Count this cluster only. Can be repeated.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a row for each day as CSV.")
def usage(by: By, since: float, until: float | None, clusters: tuple[str, ...], as_csv: bool) -> None:
    """Show usage."""
    report = with_services(lambda hyperpod: read_usage(hyperpod, by, since, until, clusters), asking=True)
    if invocation().as_json:
        print_json(report)
        return
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(csv_rows(report))
        print_notes((_period(report), *report.notes))
        return
    titles = (by.upper(), "JOBS", "NODE-HOURS", "GPU-HOURS", "COST")
    rows: list[tuple[str, ...]] = [
        (
            row.key,
            str(row.runs),
            format_hours(row.node_hours),
            format_hours(row.gpu_hours),
            "-" if row.amount is None else money(row.amount, report.currency),
        )
        for row in report.rows
    ]
    if len(rows) > 1:
        rows.append(_total(report))
    print_table(Table(titles, rows, empty="no jobs in this time"))
    _print_idle(report)
    for bill in report.bills:
        print(f"\nWhat AWS charges for {bill.cluster} this month, by its tag: {bill.url}")
    print_notes((_period(report), *report.notes))


def _period(report: UsageReport) -> str:
    """Which time was counted: days if it is whole ones, the last one included."""
    begin, end = (datetime.fromtimestamp(time, UTC) for time in (report.begin, report.end))
    if not (report.begin % DAY_S or report.end % DAY_S):
        return f"counted: {begin:%Y-%m-%d} to {end - timedelta(days=1):%Y-%m-%d} (UTC)"
    return f"counted: {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} (UTC)"


def _total(report: UsageReport) -> tuple[str, ...]:
    amounts = [row.amount for row in report.rows]
    known = money(sum(amount or 0.0 for amount in amounts), report.currency)
    return (
        "total",
        str(sum(row.runs for row in report.rows)),
        format_hours(sum(row.node_hours for row in report.rows)),
        format_hours(sum(row.gpu_hours for row in report.rows)),
        "-" if all(amount is None for amount in amounts) else f"at least {known}" if None in amounts else known,
    )


def _print_idle(report: UsageReport) -> None:
    """The nodes that were paid and not allocated."""
    if not report.idle:
        return
    print()
    rows = [
        (
            row.cluster,
            row.instance_type,
            format_hours(row.paid_hours),
            format_hours(row.used_hours),
            format_hours(row.idle_hours),
            "-" if row.amount is None else money(row.amount, report.currency),
        )
        for row in report.idle
    ]
    titles = ("IDLE NODES OF", "TYPE", "PRESENT HOURS", "ALLOCATED", "IDLE", "IDLE COST")
    print_table(Table(titles, rows))
