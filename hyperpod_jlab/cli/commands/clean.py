"""``hpj clean``: remove old runs, and code that no run needs."""

from __future__ import annotations

import sys
from typing import Any

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, moment, print_json, print_table
from hyperpod_jlab.cli.parameters import AgeParam
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.model.quantities import format_size
from hyperpod_jlab.model.run import iso_time
from hyperpod_jlab.services.cleaning import Cleaner, Plan
from hyperpod_jlab.services.hyperpod import Hyperpod

_HELP = """\
Remove your old runs with their code and logs, what broken-off submits left behind, and code that no run needs any more.

It says first how much that is, and asks. Only runs that have ended go, and none that another one still waits for.
"""

_EXAMPLES = (
    "hpj clean --older 30d --dry-run",
    "hpj clean --older 2w --keep-failed",
    "hpj clean --older 30d --yes --json",
)


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.option(
    "--older",
    type=AgeParam(),
    default="30d",
    help="Runs that ended longer ago than this, such as 12h, 30d or 2w. Default: 30d.",
)
@click.option("--keep-failed", is_flag=True, help="Keep runs that failed.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean(older: float, keep_failed: bool, dry_run: bool, yes: bool) -> None:
    """Clean up."""
    as_json = invocation().as_json
    asks = not as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)
    plan = with_services(lambda hyperpod: _plan(hyperpod, older, keep_failed))
    if not as_json:
        _print(plan, listed=dry_run)
    if not (dry_run or plan.empty or yes):
        if not asks:
            raise InvalidInputError(
                f"nothing is removed without your word; it would be {_sum(plan)}",
                code="not_confirmed",
                hint="add --yes to remove it, or --dry-run to list it",
                detail=_document(plan, removed=False),
            )
        if not click.confirm("Remove it?", err=True):
            print("nothing was removed", file=sys.stderr)
            return
    removes = not (dry_run or plan.empty)
    problems = with_services(lambda hyperpod: _carry_out(hyperpod, plan)) if removes else []
    if as_json:
        print_json(_document(plan, removed=removes and not problems))
    elif removes and not problems:
        print("removed", file=sys.stderr)
    for problem in problems[1:]:
        print(f"error: {printable(problem.message)}", file=sys.stderr)
    if problems:
        raise problems[0]


async def _plan(hyperpod: Hyperpod, older: float, keep_failed: bool) -> Plan:
    async with slow_steps("looking at runs and code"):
        return await Cleaner(hyperpod.partition, hyperpod.runs).plan(older, keep_failed=keep_failed)


async def _carry_out(hyperpod: Hyperpod, plan: Plan) -> list[HyperpodError]:
    async with slow_steps("removing"):
        return await Cleaner(hyperpod.partition, hyperpod.runs).carry_out(plan)


def _sum(plan: Plan) -> str:
    parts = [_count(len(plan.runs), "run", "runs")]
    if plan.staging:
        parts.append(_count(len(plan.staging), "broken-off submit", "broken-off submits"))
    if plan.code:
        parts.append(_count(plan.code, "file of code", "files of code"))
    if plan.secrets:
        parts.append(_count(len(plan.secrets), "run's secrets", "runs' secrets"))
    return f"{', '.join(parts)}: {format_size(plan.size)}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _print(plan: Plan, *, listed: bool) -> None:
    for kept in plan.kept:
        print(f"{kept.run_id} stays: {kept.reason}", file=sys.stderr)
    if listed:
        rows = [
            (
                old.run.run_id,
                old.run.name,
                old.run.state,
                moment(old.run.status.ended_at or old.run.created_at),
                format_size(old.size),
            )
            for old in plan.runs
        ]
        print_table(Table(("RUN", "NAME", "STATE", "ENDED", "SIZE"), rows))
    print("nothing to remove" if plan.empty else _sum(plan))


def _document(plan: Plan, *, removed: bool) -> dict[str, Any]:
    return {
        "removed": removed,
        "bytes": plan.size,
        "runs": [
            {
                "run_id": old.run.run_id,
                "name": old.run.name,
                "state": old.run.state,
                "ended_at": iso_time(old.run.status.ended_at),
                "bytes": old.size,
            }
            for old in plan.runs
        ],
        "kept": [{"run_id": kept.run_id, "reason": kept.reason} for kept in plan.kept],
        "staging": {"folders": len(plan.staging), "bytes": plan.staging_size},
        "code": {"files": plan.code, "bytes": plan.code_size},
        "secrets": len(plan.secrets),
    }
