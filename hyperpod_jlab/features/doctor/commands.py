"""``hpj doctor``: check the installation, and the way of a run to a node."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hyperpod_jlab.cli.failure import ChecksFailedError, OutputError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, run_cancelled
from hyperpod_jlab.cli.output import colour_state, print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable, safe_text
from hyperpod_jlab.core.check import Check
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.features.doctor.service import DoctorRequest, examine
from hyperpod_jlab.features.doctor.service import report as written

_LEVEL_WIDTH, _NAME_WIDTH = 7, 20
"""Fixed widths of the first two columns: lines are printed as they arrive, before the longest is known."""

_STDOUT = "-"


@click.command(
    cls=HpjCommand,
    help="Check each step that a run takes to a node and back: this installation, Studio, the IAM role, the network, the mounts, the storage partition "
    "and every configured cluster.\n\n"
    "The result of a check is ok, warn, fail or unknown (it could not be checked), with what to do and who can do it. "
    "The exit code is 2 if a check fails. The command changes nothing, and submits a job only with --job.",
    examples=(
        "hpj doctor",
        "hpj doctor --cluster ml-slurm --job",
        "hpj doctor --report for-my-admin.md",
        "hpj doctor --aws",
        "hpj doctor --json",
    ),
)
@click.option("--cluster", metavar="NAME", help="Check only the steps to this cluster.")
@click.option(
    "--job",
    is_flag=True,
    help="After the other checks, submit a real job to the cluster (default: the configured default cluster) and wait for its log: one task on one node, for at most three minutes. The job is then cancelled and removed.",
)
@click.option(
    "--aws",
    is_flag=True,
    help="Also check what this package assumes about AWS and could not try (docs/unverified.md). The requests only describe, list and look up.",
)
@click.option(
    "--report",
    is_flag=False,
    flag_value=_STDOUT,
    default=None,
    metavar="[FILE]",
    help="Write a report for an administrator, in Markdown and without secrets, to FILE. Without FILE, print the report instead of the checks.",
)
def doctor(cluster: str | None, job: bool, aws: bool, report: str | None) -> None:
    """Check the installation."""
    as_json = invocation().as_json
    is_quiet = as_json or report == _STDOUT
    checks = run_cancelled(lambda: _examine(DoctorRequest(cluster, job, aws), is_quiet))
    failed_checks = [check for check in checks if check.level == "fail"]
    text = written(checks) if report is not None else None
    if text is not None and report not in {None, _STDOUT}:
        _save(text, Path(str(report)))
    if as_json:
        extra = {} if text is None else {"report": text}
        print_json({"ok": not failed_checks, "checks": checks, **extra})
    elif text is not None and report == _STDOUT:
        print(safe_text(text), end="")
    elif text is not None:
        print(f"report: {report}", file=sys.stderr)
    if failed_checks:
        names = ", ".join(dict.fromkeys(check.name for check in failed_checks))
        raise ChecksFailedError(
            f"failed checks: {names}",
            hint=_first_fix(failed_checks),
            detail={"failed": to_plain(failed_checks, list[Check])},
        )


async def _examine(request: DoctorRequest, is_quiet: bool) -> list[Check]:
    checks = []
    async with slow_steps("collecting facts") as steps:
        async for check in examine(request, lambda step: steps.next(f"checking {step.name}")):
            checks.append(check)
            if not is_quiet:
                steps.clear()
                _print(check)
    return checks


def _save(text: str, path: Path) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}", hint="use another file") from error


def _first_fix(failed_checks: list[Check]) -> str | None:
    """The fix to start with; the others were printed above."""
    return next((check.fix.splitlines()[0] for check in failed_checks if check.fix), None)


def _print(check: Check) -> None:
    level = colour_state(check.level, f"{check.level:<{_LEVEL_WIDTH}}")
    print(f"{level}  {check.name:<{_NAME_WIDTH}}  {printable(check.evidence)}")
    if check.fix and check.level != "ok":
        label = "hint" if check.who == "you" else "for your administrator"
        for line in check.fix.splitlines():
            print(f"{'':<{_LEVEL_WIDTH + _NAME_WIDTH + 4}}{label}: {printable(line)}")
    sys.stdout.flush()
