"""``hpj admin verify-aws``: check facts about AWS that need an account."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab import __version__
from hyperpod_jlab.admin.cluster_config.commands import REGION
from hyperpod_jlab.admin.verify.models import (
    CheckContext,
    Journal,
    mask_identifiers,
    report,
    unknown,
)
from hyperpod_jlab.admin.verify.service import (
    error_text,
    outcomes,
    run_read_checks,
    run_write_checks,
    select_facts,
)
from hyperpod_jlab.admin.verify.write_checks import (
    CleanUp,
    Leftover,
    TemporaryDomain,
    WriteContext,
    find_location,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, run_cancelled
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable, safe_text
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError

if TYPE_CHECKING:
    from hyperpod_jlab.admin.verify.models import Fact, FactOutcome
    from hyperpod_jlab.admin.verify.service import Findings
    from hyperpod_jlab.admin.verify.write_checks import Tell
    from hyperpod_jlab.cli.slow_steps import Steps

_HELP = """\
Check on a real account what this project assumes about AWS and could not test. docs/unverified.md lists each fact and what breaks if it is wrong.

Without --write nothing is changed: the calls only describe, list, look up and simulate. With --write a Studio domain with a user profile and a space is created, used for the checks and
deleted; this takes about 15 minutes. Nothing else is touched. If such a run is killed, the next one with --write, or --clean-up, deletes what it left. Both ask first.

The report is Markdown without account ids; paste it into an issue. The exit code is 1 if a fact does not hold.
"""
_CLEAN = "hpj admin verify-aws --clean-up"
_SPACE_EVENT = "create-space-event"
_EVENTS = ("create-profile-event", _SPACE_EVENT)
"""Facts about events, which --write causes."""
_LATER_NOTE = f"in about 15 minutes CloudTrail has the events of this run: hpj admin verify-aws --only create-profile-event --only {_SPACE_EVENT}"
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")


class _StepReporter:
    """Prints each step before it is done."""

    steps: Steps | None = None

    def __call__(self, text: str) -> None:
        if self.steps is not None:
            self.steps.clear()
            self.steps.next(text)
        _print_message(f"-> {text}")


@dataclass(frozen=True)
class _VerifyRequest:
    """The command line options."""

    facts: tuple[Fact, ...]
    ground: CheckContext
    file_system: str | None
    vpc: str | None
    subnets: tuple[str, ...]
    role: str | None


def _role(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _ROLE.fullmatch(value):
        option = str(parameter.name).replace("_", "-")
        raise InvalidInputError(
            f"--{option} must be the ARN of a role, not '{value[:80]}'",
            hint="such as arn:aws:iam::111122223333:role/NAME",
            detail={"field": parameter.name},
        )
    return value


@click.command(
    "verify-aws",
    cls=HpjCommand,
    help=_HELP,
    examples=(
        "hpj admin verify-aws",
        "hpj admin verify-aws --only node-target --cluster ml-cluster",
        "hpj admin verify-aws --write --as-role arn:aws:iam::111122223333:role/Tester > report.md",
        _CLEAN,
    ),
)
@REGION
@click.option(
    "--domain",
    metavar="ID",
    callback=aws_name,
    help="Domain to check; --write uses its VPC, subnets and role. Default: the domain of this space, or the first one.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    callback=aws_name,
    help="Check only this HyperPod cluster. Default: up to ten in the region.",
)
@click.option("--only", multiple=True, metavar="FACT", help="Check only this fact. Repeatable.")
@click.option(
    "--as-role",
    metavar="ARN",
    callback=_role,
    help="Role that you may assume, for sessions with a subset of its permissions.",
)
@click.option("--write", is_flag=True, help="Also run the checks that need a temporary domain.")
@click.option("--vpc", metavar="ID", help="With --write: VPC of the temporary domain.")
@click.option(
    "--subnet",
    "subnets",
    multiple=True,
    metavar="ID",
    help="With --write: subnet of the temporary domain. Repeatable.",
)
@click.option(
    "--role", metavar="ARN", callback=_role, help="With --write: role of the temporary domain."
)
@click.option(
    "--file-system",
    metavar="ID",
    callback=aws_name,
    help="With --write: file system in that VPC, for the settings of the temporary profile. It is not mounted.",
)
@click.option("--clean-up", is_flag=True, help="Only delete what killed runs left behind.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def verify_aws(region: str | None, write: bool, clean_up: bool, yes: bool, **options: Any) -> None:
    """Go through the table of facts."""
    _check_options(write, clean_up, options)
    studio = find_studio()
    domain = options["domain"] or (studio.domain_id if studio else None)
    ground = CheckContext(Aws(region), domain, options["cluster"], options["as_role"])
    request = _VerifyRequest(
        select_facts(options["only"]),
        ground,
        options["file_system"],
        options["vpc"],
        options["subnets"],
        options["role"],
    )
    if clean_up:
        _clean_up(ground, yes)
    elif write:
        _write(request, yes)
    else:
        findings, notes = run_cancelled(lambda: _read(request))
        _print_report(request, findings, notes, "read-only")


def _check_options(write: bool, clean_up: bool, options: dict[str, Any]) -> None:
    """Refuse options without effect, and resources that no fact needs.

    Raises:
        InvalidInputError: An option has no effect here.
    """
    if write and clean_up:
        raise InvalidInputError("--clean-up and --write cannot be used together")
    for field in ("vpc", "subnets", "role", "file_system"):
        if options[field] and not write:
            option = field.removesuffix("s").replace("_", "-")
            raise InvalidInputError(
                f"--{option} is for the temporary domain, but none is created",
                hint=f"add --write, or leave out --{option}",
                detail={"field": field},
            )
    needs = any(
        fact.how == "write" or fact.name in _EVENTS for fact in select_facts(options["only"])
    )
    if write and not needs:
        raise InvalidInputError(
            "none of these facts needs a temporary domain",
            hint="leave out --write",
            detail={"field": "only"},
        )


async def _read(request: _VerifyRequest) -> tuple[Findings, list[str]]:
    ground = request.ground
    async with slow_steps("asking AWS") as steps:
        journal = await _journal(ground.aws)
        await ground.check_named()
        findings = await run_read_checks(request.facts, ground, steps.next)
    return findings, [
        f"left by an earlier run: {leftover.name}; {_CLEAN}"
        for leftover in journal.list_leftovers()
    ]


def _write(request: _VerifyRequest, yes: bool) -> None:
    reporter = _StepReporter()
    throw_away, clean, leftovers = run_cancelled(lambda: _prepare(request, reporter))
    region = run_cancelled(request.ground.aws.region)
    _print_message(f"This will be created in {region} and deleted at the end:")
    for line in throw_away.words():
        _print_message(f"  {line}")
    old_leftovers = [leftover for leftover in leftovers if not leftover.may_be_in_use]
    for leftover in old_leftovers:
        _print_message(f"This will be deleted, because an earlier run left it: {leftover.words}")
    _ask("Create it, check the facts and delete it?", yes)
    findings, notes, failure = run_cancelled(
        lambda: _run_write_checks(request, throw_away, clean, old_leftovers, reporter)
    )
    notes += [f"not changed: {leftover.words}" for leftover in leftovers if leftover.may_be_in_use]
    _print_report(request, findings, notes, "with --write", failure)


async def _journal(aws: Aws) -> Journal:
    identity = await aws.call("sts", "GetCallerIdentity")
    return Journal(str(identity["Account"]), await aws.region())


async def _prepare(
    request: _VerifyRequest, tell: Tell
) -> tuple[TemporaryDomain, CleanUp, list[Leftover]]:
    """What will be created, and leftovers of earlier runs; changes nothing."""
    aws = request.ground.aws
    async with slow_steps("asking AWS"):
        location = await find_location(request.ground, request.vpc, request.subnets, request.role)
        journal = await _journal(aws)
        clean = CleanUp(aws, journal, tell)
        return TemporaryDomain(aws, location, journal, tell), clean, await clean.list_leftovers()


async def _run_write_checks(
    request: _VerifyRequest,
    throw_away: TemporaryDomain,
    clean: CleanUp,
    old_leftovers: Sequence[Leftover],
    reporter: _StepReporter,
) -> tuple[Findings, list[str], HyperpodError | None]:
    """All findings, notes, and the worst error."""
    notes: list[str] = []
    failures: list[HyperpodError] = []
    findings: Findings = {}

    async def delete(leftover: Leftover) -> None:
        try:
            await clean.delete(leftover)
        except HyperpodError as error:
            notes.append(f"left behind: {leftover.words}: {error_text(error)}; later: {_CLEAN}")
            failures.append(error)

    async with slow_steps("asking AWS") as reporter.steps:
        steps = reporter.steps
        for leftover in old_leftovers:
            await delete(leftover)
        read = [fact for fact in request.facts if fact.how == "read"]
        findings |= await run_read_checks(read, request.ground, steps.next)
        try:
            await throw_away.make()
            trial = WriteContext(request.ground, throw_away, reporter, request.file_system)
            findings |= await run_write_checks(request.facts, trial, steps.next)
            if _SPACE_EVENT in {fact.name for fact in request.facts}:
                await throw_away.make_space()
                notes.append(_LATER_NOTE)
        except HyperpodError as error:
            notes.append(f"some parts could not be created: {error_text(error)}")
            reason = unknown(f"the temporary domain could not be created: {error.message}")
            skipped = {fact.name: reason for fact in request.facts if fact.how == "write"}
            findings = {**skipped, **findings}
            failures.append(error)
        except asyncio.CancelledError:
            reporter(f"deleting what was created; press Ctrl-C again to leave that to: {_CLEAN}")
            raise
        finally:
            await delete(
                Leftover(throw_away.name, gone=(throw_away.domain,) if throw_away.domain else ())
            )
    return findings, notes, failures[0] if failures else None


def _clean_up(ground: CheckContext, yes: bool) -> None:
    reporter = _StepReporter()

    async def look() -> tuple[CleanUp, list[Leftover]]:
        async with slow_steps("asking AWS"):
            clean = CleanUp(ground.aws, await _journal(ground.aws), reporter)
            return clean, await clean.list_leftovers()

    clean, leftovers = run_cancelled(look)
    old_leftovers = [leftover for leftover in leftovers if not leftover.may_be_in_use]
    for leftover in leftovers:
        status = (
            "will be deleted"
            if leftover in old_leftovers
            else "is kept, because a run may be using it"
        )
        _print_message(f"{leftover.words}: {status}")
    if old_leftovers:
        _ask("Delete it?", yes)

    async def work() -> None:
        async with slow_steps("asking AWS") as reporter.steps:
            for leftover in old_leftovers:
                await clean.delete(leftover)

    run_cancelled(work)
    if invocation().as_json:
        print_json({"deleted": [leftover.name for leftover in old_leftovers]})
    else:
        print(f"{len(old_leftovers)} deleted" if old_leftovers else "nothing is left")


def _print_report(
    request: _VerifyRequest,
    findings: Findings,
    notes: Sequence[str],
    description: str,
    failure: HyperpodError | None = None,
) -> None:
    """Print the report, and set the exit code.

    Raises:
        HyperpodError: An error apart from the facts.
    """
    results = outcomes(request.facts, findings)
    region = run_cancelled(request.ground.aws.region)
    if invocation().as_json:
        document = {
            "region": region,
            "facts": list(map(_document, results)),
            "notes": list(notes),
        }
        print_json(json.loads(mask_identifiers(json.dumps(document))))
    else:
        about = (f"hyperpod_jlab {__version__}, {region}, {description}",)
        print(safe_text(report(results, about, notes)), end="", flush=True)
    if failure is not None:
        raise failure
    if any(result.finding.verdict == "does not hold" for result in results):
        click.get_current_context().exit(1)


def _document(outcome: FactOutcome) -> dict[str, Any]:
    fact, finding = outcome.fact, outcome.finding
    return {
        "fact": fact.name,
        "statement": fact.statement,
        "how": fact.how,
        "verdict": finding.verdict,
        "reason": finding.words,
        "if_wrong": fact.if_wrong,
        "code": list(fact.code),
    }


def _ask(question: str, yes: bool) -> None:
    """Ask for a confirmation.

    Raises:
        InvalidInputError: There is no terminal, or the user declines.
    """
    if yes:
        return
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            "this needs confirmation",
            code="not_confirmed",
            hint="confirm with --yes",
        )
    if not click.confirm(question, err=True):
        raise InvalidInputError("nothing was done", code="not_confirmed")


def _print_message(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
