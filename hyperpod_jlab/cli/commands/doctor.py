"""``hpj doctor``: check the installation."""

from __future__ import annotations

import asyncio

import click

from hyperpod_jlab.cli.failure import ChecksFailedError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import coloured, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.services.checks import Check
from hyperpod_jlab.services.doctor import examine


@click.command(
    cls=HpjCommand,
    help="Check the installation: versions, configuration, storage, the local cluster and all others, Studio and AWS. "
    "Each check says how to mend what is wrong; the exit code is 2 when one fails.",
    examples=("hpj doctor", "hpj doctor --json"),
)
def doctor() -> None:
    """Check the installation."""
    checks = asyncio.run(_examine())
    failed = [check for check in checks if check.level == "fail"]
    if invocation().as_json:
        print_json({"ok": not failed, "checks": [check.to_dict() for check in checks]})
    else:
        _print(checks)
    if failed:
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        raise ChecksFailedError(
            f"not well: {names}",
            hint=failed[0].hint,
            detail={"failed": [check.to_dict() for check in failed]},
        )


async def _examine() -> list[Check]:
    async with slow_steps("looking around"):
        return await examine()


def _print(checks: list[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        level = coloured(check.level, f"{check.level:<4}")
        print(f"{level}  {check.name:<{width}}  {printable(check.message)}")
        if check.hint and check.level != "ok":
            print(f"{'':<{width + 8}}hint: {printable(check.hint)}")
