"""``hpj admin verify-aws``: what could not be checked without an account is checked on one."""

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
from hyperpod_jlab.admin.verify.models import CheckContext, Journal, masked, report, unknown
from hyperpod_jlab.admin.verify.service import chosen, outcomes, read_only, tried, words_of
from hyperpod_jlab.admin.verify.write_checks import (
    CleanUp,
    Leftover,
    ThrowAway,
    WriteContext,
    find_place,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.cli.aws_names import aws_name
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, run_cancelled
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import is_terminal, printable, shown_text
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
"""Facts that are read, of events that --write makes."""
_LATER = f"in about 15 minutes CloudTrail has the events of this run: hpj admin verify-aws --only create-profile-event --only {_SPACE_EVENT}"
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")


class _Teller:
    """Names each step before it is done."""

    steps: Steps | None = None

    def __call__(self, words: str) -> None:
        if self.steps is not None:
            self.steps.clear()
            self.steps.next(words)
        _say(f"-> {words}")


@dataclass(frozen=True)
class _Asked:
    """What was typed."""

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
    asked = _Asked(
        chosen(options["only"]),
        ground,
        options["file_system"],
        options["vpc"],
        options["subnets"],
        options["role"],
    )
    if clean_up:
        _clean_up(ground, yes)
    elif write:
        _write(asked, yes)
    else:
        found, notes = run_cancelled(lambda: _read(asked))
        _conclude(asked, found, notes, "read-only")


def _check_options(write: bool, clean_up: bool, options: dict[str, Any]) -> None:
    """See that nothing was given that would be passed over, and that nothing is made for no fact.

    Raises:
        InvalidInputError: An option has no use here.
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
    needs = any(fact.how == "write" or fact.name in _EVENTS for fact in chosen(options["only"]))
    if write and not needs:
        raise InvalidInputError(
            "none of these facts needs a temporary domain",
            hint="leave out --write",
            detail={"field": "only"},
        )


async def _read(asked: _Asked) -> tuple[Findings, list[str]]:
    ground = asked.ground
    async with slow_steps("asking AWS") as steps:
        journal = await _journal(ground.aws)
        await ground.check_named()
        found = await read_only(asked.facts, ground, steps.next)
    return found, [f"left by an earlier run: {one.name}; {_CLEAN}" for one in journal.left()]


def _write(asked: _Asked, yes: bool) -> None:
    teller = _Teller()
    made, clean, left = run_cancelled(lambda: _prepared(asked, teller))
    region = run_cancelled(asked.ground.aws.region)
    _say(f"This will be created in {region} and deleted at the end:")
    for line in made.words():
        _say(f"  {line}")
    old = [one for one in left if not one.may_be_in_use]
    for one in old:
        _say(f"This will be deleted, because an earlier run left it: {one.words}")
    _ask("Create it, check the facts and delete it?", yes)
    found, notes, failure = run_cancelled(lambda: _tried(asked, made, clean, old, teller))
    notes += [f"not changed: {one.words}" for one in left if one.may_be_in_use]
    _conclude(asked, found, notes, "with --write", failure)


async def _journal(aws: Aws) -> Journal:
    identity = await aws.call("sts", "GetCallerIdentity")
    return Journal(str(identity["Account"]), await aws.region())


async def _prepared(asked: _Asked, tell: Tell) -> tuple[ThrowAway, CleanUp, list[Leftover]]:
    """What will be made, and what is left of earlier runs; nothing is changed."""
    aws = asked.ground.aws
    async with slow_steps("asking AWS"):
        place = await find_place(asked.ground, asked.vpc, asked.subnets, asked.role)
        journal = await _journal(aws)
        clean = CleanUp(aws, journal, tell)
        return ThrowAway(aws, place, journal, tell), clean, await clean.left()


async def _tried(
    asked: _Asked, made: ThrowAway, clean: CleanUp, old: Sequence[Leftover], teller: _Teller
) -> tuple[Findings, list[str], HyperpodError | None]:
    """All findings, what else is to be said, and the worst that went wrong."""
    notes: list[str] = []
    failures: list[HyperpodError] = []
    found: Findings = {}

    async def delete(one: Leftover) -> None:
        try:
            await clean.delete(one)
        except HyperpodError as error:
            notes.append(f"left behind: {one.words}: {words_of(error)}; later: {_CLEAN}")
            failures.append(error)

    async with slow_steps("asking AWS") as teller.steps:
        steps = teller.steps
        for one in old:
            await delete(one)
        read = [fact for fact in asked.facts if fact.how == "read"]
        found |= await read_only(read, asked.ground, steps.next)
        try:
            await made.make()
            trial = WriteContext(asked.ground, made, teller, asked.file_system)
            found |= await tried(asked.facts, trial, steps.next)
            if _SPACE_EVENT in {fact.name for fact in asked.facts}:
                await made.make_space()
                notes.append(_LATER)
        except HyperpodError as error:
            notes.append(f"some parts could not be created: {words_of(error)}")
            reason = unknown(f"the temporary domain could not be created: {error.message}")
            left = {fact.name: reason for fact in asked.facts if fact.how == "write"}
            found = {**left, **found}
            failures.append(error)
        except asyncio.CancelledError:
            teller(f"deleting what was created; press Ctrl-C again to leave that to: {_CLEAN}")
            raise
        finally:
            await delete(Leftover(made.name, gone=(made.domain,) if made.domain else ()))
    return found, notes, failures[0] if failures else None


def _clean_up(ground: CheckContext, yes: bool) -> None:
    teller = _Teller()

    async def look() -> tuple[CleanUp, list[Leftover]]:
        async with slow_steps("asking AWS"):
            clean = CleanUp(ground.aws, await _journal(ground.aws), teller)
            return clean, await clean.left()

    clean, left = run_cancelled(look)
    old = [one for one in left if not one.may_be_in_use]
    for one in left:
        word = "will be deleted" if one in old else "is kept, because a run may be using it"
        _say(f"{one.words}: {word}")
    if old:
        _ask("Delete it?", yes)

    async def work() -> None:
        async with slow_steps("asking AWS") as teller.steps:
            for one in old:
                await clean.delete(one)

    run_cancelled(work)
    if invocation().as_json:
        print_json({"deleted": [one.name for one in old]})
    else:
        print(f"{len(old)} deleted" if old else "nothing is left")


def _conclude(
    asked: _Asked,
    found: Findings,
    notes: Sequence[str],
    how: str,
    failure: HyperpodError | None = None,
) -> None:
    """Print the report, and leave with its exit code.

    Raises:
        HyperpodError: What went wrong beside the facts.
    """
    results = outcomes(asked.facts, found)
    region = run_cancelled(asked.ground.aws.region)
    if invocation().as_json:
        document = {
            "region": region,
            "facts": list(map(_document, results)),
            "notes": list(notes),
        }
        print_json(json.loads(masked(json.dumps(document))))
    else:
        about = (f"hyperpod_jlab {__version__}, {region}, {how}",)
        print(shown_text(report(results, about, notes)), end="", flush=True)
    if failure is not None:
        raise failure
    if any(one.finding.verdict == "does not hold" for one in results):
        click.get_current_context().exit(1)


def _document(outcome: FactOutcome) -> dict[str, Any]:
    fact, found = outcome.fact, outcome.finding
    return {
        "fact": fact.name,
        "statement": fact.statement,
        "how": fact.how,
        "verdict": found.verdict,
        "reason": found.words,
        "if_wrong": fact.if_wrong,
        "code": list(fact.code),
    }


def _ask(words: str, yes: bool) -> None:
    """Ask whether it is wanted.

    Raises:
        InvalidInputError: Nobody can be asked, or it is not.
    """
    if yes:
        return
    if invocation().as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInputError(
            "this needs confirmation",
            code="not_confirmed",
            hint="confirm with --yes",
        )
    if not click.confirm(words, err=True):
        raise InvalidInputError("nothing was done", code="not_confirmed")


def _say(words: str) -> None:
    print(printable(words), file=sys.stderr, flush=True)
