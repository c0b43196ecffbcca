"""``hpj storage migrate``: move runs to the layout of this version."""

from __future__ import annotations

import sys

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.errors import StorageError
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.migration import MigrationPlan, carry_out, plan_migration
from hyperpod_jlab.storage.migration import Moved

_HELP = """\
Move your runs to the layout of this version. On a shared partition each user has a folder of their own, .hyperpod-UID, that nobody else
can write to; older versions kept the runs of all users in one folder.

Run ids stay. Runs that have not ended stay where they are until the next time. Safe to be interrupted and run again.
"""


@click.command(
    cls=HpjCommand, help=_HELP, examples=("hpj storage migrate --dry-run", "hpj storage migrate")
)
@click.option("--dry-run", is_flag=True, help="Only list what would be moved.")
def migrate(dry_run: bool) -> None:
    """Move runs."""
    plan, moved = with_services(lambda hyperpod: _migrated(hyperpod, dry_run=dry_run))
    if invocation().as_json:
        print_json(_document(plan, moved))
    else:
        _print(plan, moved)
    if moved is not None and moved.problems:
        run_id, reason = moved.problems[0]
        raise StorageError(
            f"{run_id} could not be moved: {reason}",
            hint="it stays readable where it is; ask an administrator to look at its folder",
            detail={"run_id": run_id},
        )


async def _migrated(hyperpod: Hyperpod, *, dry_run: bool) -> tuple[MigrationPlan, Moved | None]:
    async with slow_steps("looking for runs") as steps:
        plan = await plan_migration(hyperpod)
        if dry_run:
            return plan, None
        steps.next("moving")
        return plan, await carry_out(hyperpod, plan)


def _print(plan: MigrationPlan, moved: Moved | None) -> None:
    for run_id, reason in plan.kept:
        print(f"{run_id} stays: {reason}", file=sys.stderr)
    if moved is None:
        for run_id in plan.runs:
            print(run_id)
        print(f"{len(plan.runs)} runs would be moved", file=sys.stderr)
        return
    for run_id, reason in moved.problems:
        print(f"{run_id} stays: {printable(reason)}", file=sys.stderr)
    print(f"{len(moved.runs)} runs and {moved.code} files of code moved", file=sys.stderr)


def _document(plan: MigrationPlan, moved: Moved | None) -> dict[str, object]:
    kept = [*plan.kept, *(moved.problems if moved is not None else ())]
    return {
        "moved": moved is not None,
        "runs": list(plan.runs if moved is None else moved.runs),
        "kept": [{"run_id": run_id, "reason": reason} for run_id, reason in kept],
        "code": 0 if moved is None else moved.code,
    }
