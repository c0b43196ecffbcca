"""``hpj doctor``: check the installation, and the way of a run to a node."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hyperpod_jlab.cli.failure import ChecksFailedError, OutputError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, run_cancelled
from hyperpod_jlab.cli.output import coloured, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable, shown_text
from hyperpod_jlab.core.check import Check
from hyperpod_jlab.core.wire import plain
from hyperpod_jlab.features.doctor.service import DoctorRequest, examine
from hyperpod_jlab.features.doctor.service import report as written

_LEVEL, _NAME = 7, 20
"""Widths of the first two columns: lines are printed as they come, so nobody knows the longest yet."""

_STDOUT = "-"


@click.command(
    cls=HpjCommand,
    help="Check the way of a run to a node and back, step by step: this installation, Studio, the role at AWS, the network, what is mounted, the storage partition, "
    "and each cluster of the configuration. Each check is ok, warn, fail or unknown (it could not be checked), and says what to do and who can do it; "
    "the exit code is 2 when one fails. Nothing is changed and no job is sent, but with --job.",
    examples=(
        "hpj doctor",
        "hpj doctor --cluster ml-slurm --job",
        "hpj doctor --report for-my-admin.md",
        "hpj doctor --json",
    ),
)
@click.option("--cluster", metavar="NAME", help="Only the way to this cluster.")
@click.option(
    "--job",
    is_flag=True,
    help="At the end send a real job to that cluster, or the default one, and wait for its log: one task on one node, for at most three minutes; then it is cancelled and removed.",
)
@click.option(
    "--report",
    is_flag=False,
    flag_value=_STDOUT,
    default=None,
    metavar="[FILE]",
    help="Write a report for an admin, in Markdown and without secrets, to FILE or to the standard output instead of the checks.",
)
def doctor(cluster: str | None, job: bool, report: str | None) -> None:
    """Check the installation."""
    as_json = invocation().as_json
    quiet = as_json or report == _STDOUT
    checks = run_cancelled(lambda: _examine(DoctorRequest(cluster, job), quiet))
    failed = [check for check in checks if check.level == "fail"]
    text = written(checks) if report is not None else None
    if text is not None and report not in {None, _STDOUT}:
        _save(text, Path(str(report)))
    if as_json:
        told = {} if text is None else {"report": text}
        print_json({"ok": not failed, "checks": checks, **told})
    elif text is not None and report == _STDOUT:
        print(shown_text(text), end="")
    elif text is not None:
        print(f"report: {report}", file=sys.stderr)
    if failed:
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        raise ChecksFailedError(
            f"not well: {names}",
            hint=_first_fix(failed),
            detail={"failed": plain(failed, list[Check])},
        )


async def _examine(asked: DoctorRequest, quiet: bool) -> list[Check]:
    checks = []
    async with slow_steps("looking around") as steps:
        async for check in examine(asked, lambda step: steps.next(f"checking {step.name}")):
            checks.append(check)
            if not quiet:
                steps.clear()
                _print(check)
    return checks


def _save(text: str, path: Path) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}", hint="name another file"
        ) from error


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
