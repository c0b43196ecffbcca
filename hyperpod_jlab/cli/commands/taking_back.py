"""``hpj admin destroy``: what was set for a domain is taken back; the data only when an admin says so twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from hyperpod_jlab.admin.applying import Result
from hyperpod_jlab.admin.converging import words_of
from hyperpod_jlab.admin.plan import NOT_KNOWN, DeletionStep, Plan, Wanted
from hyperpod_jlab.admin.there import There
from hyperpod_jlab.admin.wiring import Wiring
from hyperpod_jlab.cli.commands.wiring import (
    carry_out,
    common_options,
    planned,
    results_of,
    wiring_of,
)
from hyperpod_jlab.cli.folder_options import PLACE_OPTIONS, folder_place
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import with_services
from hyperpod_jlab.cli.plan_output import conclude, confirmed, tell
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, RefusedError
from hyperpod_jlab.model.finding import refuse_on_error
from hyperpod_jlab.services.folder_keepers import FolderPlace
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.open_wirer import open_wirer

_MOST = 3
"""Reasons that an error names."""

_DESTROY = """\
Take back what 'hpj admin apply' has set, and nothing else.

Folders and what lies in them stay; the plan names them. With --delete-data they are deleted for good, with all that is in them: those that profiles were
given from here, that nobody mounts then, and that nothing that runs has open. If something of it cannot be done nothing is. Broken off, it may be run again.

The exit code is 0 when nothing of it is left, 1 when a step waits or is blocked, and else that of the worst error.
"""


def _with_place(function: Any) -> Any:
    for option in PLACE_OPTIONS:
        function = option(function)
    return common_options(function)


@click.command(
    "destroy",
    cls=HpjCommand,
    help=_DESTROY,
    examples=(
        "hpj admin destroy --domain d-abc123 --cluster ml-cluster",
        "hpj admin destroy --domain d-abc123 --cluster ml-cluster --delete-data fs-0123456789abcdef0 --folders slurm",
    ),
)
@_with_place
@click.option(
    "--delete-data",
    metavar="ID",
    help="Delete the folders too. ID is the file system's, so that nobody does it by accident.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def destroy(yes: bool, delete_data: str | None, **options: Any) -> None:
    """Take back what was set."""
    wiring, region = wiring_of(None, options)
    place = folder_place(options)
    if delete_data is None:
        if place.by != "none":
            raise InvalidInputError(
                "who looks at folders is asked for with --delete-data only",
                hint="folders stay: leave --folders and --mounted-at out",
                detail={"field": "folders"},
            )
        carry_out(wiring, region, yes, place)
        return
    if place.by == "none":
        raise InvalidInputError(
            "--delete-data: nobody says who deletes the folders",
            hint="where the whole file system is mounted here: --mounted-at; else --folders slurm or kubernetes",
            detail={"field": "folders"},
        )
    _with_data(wiring, region, yes, place, delete_data)


def _with_data(
    wiring: Wiring, region: str | None, yes: bool, place: FolderPlace, named: str
) -> None:
    """First the lists, then the folders, and their marks at last: what is broken off in between may be done again."""
    marked = replace(wiring, wanted=replace(wiring.wanted, without_data=True))
    there, made = planned(marked, region, place)
    _check_named(there, named)
    _check_claim(there)
    _check_all(made)
    folders = [step for step in made.deletions if step.can_be_done]
    count = sum(step.can_be_done for step in made.steps) + len(folders)
    if count and not (yes or confirmed(count, _question(folders))):
        return
    _check_same(made, planned(marked, region, place, quiet=True)[1])
    results = results_of(marked, region, place, there, made)
    if folders and _is_done(results):
        results += _deleted(marked, region, place, there, made)
    if _is_done(results):
        with_services(lambda services: _unmark(services, wiring, region, results))
    conclude(results)


async def _unmark(
    services: Hyperpod, wiring: Wiring, region: str | None, results: list[Result]
) -> None:
    """Take the marks away; what fails is a result too."""
    async with open_wirer(services, wiring, region, FolderPlace()) as wirer:
        there, made = await wirer.plan()
        refuse_on_error(list(made.findings))
        _check_claim(there)
        last = {one.step.target: one async for one in wirer.apply(there, made)}
    results += [one for one in last.values() if not _is_done([one])]


def _deleted(
    wiring: Wiring, region: str | None, place: FolderPlace, there: There, made: Plan
) -> list[Result]:
    """Delete the folders of a plan, telling people of each; see `Wirer.delete`."""
    asked = [step for step in made.deletions if step.can_be_done]

    async def work(services: Hyperpod) -> Mapping[str, HyperpodError | None]:
        async with (
            slow_steps("deleting"),
            open_wirer(services, wiring, region, place) as wirer,
        ):
            return await wirer.delete(there, asked)

    ended = with_services(work)
    results = [Result(step, ended[step.path] is None, ended[step.path]) for step in asked]
    for result in results:
        tell(result)
    return results


def _is_done(results: Sequence[Result]) -> bool:
    return all(one.done or (one.error is None and not one.step.is_drift) for one in results)


def _check_named(there: There, given: str) -> None:
    found = there.file_system.name
    if given != found:
        raise InvalidInputError(
            f"--delete-data: '{given[:60]}' is not the file system that this is about, {found}",
            hint=f"nothing was done; if its folders are to be deleted: --delete-data {found}",
            detail={"field": "delete_data"},
        )


def _check_claim(there: There) -> None:
    """See that nobody applies anything else to the domain. What a `destroy` left that was broken off is no hindrance.

    Raises:
        RefusedError: Somebody does, or has been broken off.
    """
    if there.claim is not None and there.claim != words_of(Wanted(None)):
        raise RefusedError(
            f"an apply to the domain has begun and not ended: {there.claim}",
            code="superseded",
            hint="let it end, or bring it to its end: run the same apply again, or destroy without --delete-data",
        )


def _check_same(shown: Plan, now: Plan) -> None:
    """See that what is done is what was shown: an admin may have thought about it for long.

    Raises:
        RefusedError: Something has changed since.
    """
    if (shown.steps, shown.deletions) != (now.steps, now.deletions):
        raise RefusedError(
            "something has changed since the plan was shown, so nothing was done",
            code="changed_meanwhile",
            hint="run this again, and look at the new plan",
        )


def _check_all(made: Plan) -> None:
    """See that all of it can be done, so that nothing is deleted beside what waits.

    Raises:
        RefusedError: Something cannot.
    """
    steps = (*made.steps, *made.deletions)
    held = [step for step in steps if step.is_drift and not step.can_be_done]
    held += [step for step in made.deletions if step.before == NOT_KNOWN]
    if held:
        said = "; ".join(f"{step.target}: {step.reason}" for step in held[:_MOST])
        more = f"; and {len(held) - _MOST} more" if len(held) > _MOST else ""
        raise RefusedError(
            f"not all of it can be done now, so nothing was: {said}{more}",
            code="data_in_use",
            hint="see to that first, or leave --delete-data out: folders stay then",
        )


def _question(folders: Sequence[DeletionStep]) -> str | None:
    """What is asked of folders that are deleted; None: there is none."""
    if not folders:
        return None
    paths = ", ".join(step.path for step in folders)
    return f"Delete {paths} with all that is in {'it' if len(folders) == 1 else 'them'}, for good?"
