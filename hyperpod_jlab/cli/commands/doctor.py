"""``hpj doctor``: check the installation, and the way of a run to a node."""

from __future__ import annotations

import asyncio
import sys

import click

from hyperpod_jlab.cli.failure import ChecksFailedError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import coloured, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.check import Check
from hyperpod_jlab.services.doctor.examination import examine

_LEVEL, _NAME = 7, 20
"""Widths of the first two columns: lines are printed as they come, so nobody knows the longest yet."""


@click.command(
    cls=HpjCommand,
    help="Check the installation: versions, configuration, storage, the local cluster and all others, Studio and AWS. "
    "Each check is ok, warn, fail or unknown (it could not be checked), and says what to do and who can do it; the exit code is 2 when one fails.",
    examples=("hpj doctor", "hpj doctor --json"),
)
def doctor() -> None:
    """Check the installation."""
    as_json = invocation().as_json
    checks = asyncio.run(_examine(as_json))
    failed = [check for check in checks if check.level == "fail"]
    if as_json:
        print_json({"ok": not failed, "checks": [check.to_dict() for check in checks]})
    if failed:
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        raise ChecksFailedError(
            f"not well: {names}",
            hint=_first_fix(failed),
            detail={"failed": [check.to_dict() for check in failed]},
        )


async def _examine(as_json: bool) -> list[Check]:
    checks = []
    async with slow_steps("looking around") as steps:
        async for check in examine(begun=lambda step: steps.next(f"checking {step.name}")):
            checks.append(check)
            if not as_json:
                steps.clear()
                _print(check)
    return checks


def _first_fix(failed: list[Check]) -> str | None:
    """One line to begin with; all others were printed."""
    return next((one.fix.splitlines()[0] for one in failed if one.fix), None)


def _print(check: Check) -> None:
    level = coloured(check.level, f"{check.level:<{_LEVEL}}")
    print(f"{level}  {check.name:<{_NAME}}  {printable(check.evidence)}")
    if check.fix and check.level != "ok":
        who = "hint" if check.who == "you" else "for your admin"
        for line in check.fix.splitlines():
            print(f"{'':<{_LEVEL + _NAME + 4}}{who}: {printable(line)}")
    sys.stdout.flush()
