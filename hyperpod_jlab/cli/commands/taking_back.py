"""``hpj admin destroy``: what was set for a domain is taken back; the data only when an admin says so twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from hyperpod_jlab.admin.plan import DeletionStep, Plan
from hyperpod_jlab.admin.there import There
from hyperpod_jlab.cli.commands.wiring import carry_out, common_options, wiring_of
from hyperpod_jlab.cli.folder_options import PLACE_OPTIONS, folder_place
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.model.errors import InvalidInputError, RefusedError

_DESTROY = """\
Take back what 'hpj admin apply' has set, and nothing else.

Folders and what lies in them stay; the plan names them. With --delete-data they are deleted for good, with all that is in them: those that profiles were
given from here, that nobody mounts then, and that nothing that runs has open. If one of them cannot be deleted nothing is done at all.

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
    "file_system_data",
    metavar="ID",
    help="Delete the folders too. ID is the file system's, so that nobody does it by accident.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def destroy(yes: bool, file_system_data: str | None, **options: Any) -> None:
    """Take back what was set."""
    wiring, region = wiring_of(None, options)
    place = folder_place(options)
    if file_system_data is None:
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
    wiring = replace(wiring, wanted=replace(wiring.wanted, without_data=True))

    def asked(there: There, made: Plan) -> str | None:
        _check_named(there, file_system_data)
        return _question(made)

    carry_out(wiring, region, yes, place, asked)


def _check_named(there: There, given: str) -> None:
    found = there.file_system.name
    if given != found:
        raise InvalidInputError(
            f"--delete-data: '{given[:60]}' is not the file system that this is about, {found}",
            hint=f"nothing was done; if its folders are to be deleted: --delete-data {found}",
            detail={"field": "delete_data"},
        )


def _question(made: Plan) -> str | None:
    """What is asked of folders that are deleted; None: there is none.

    Raises:
        RefusedError: One cannot be deleted. Once its mark is gone nobody would know that it was given from here.
    """
    steps = [step for step in made.steps if isinstance(step, DeletionStep)]
    held = [step for step in steps if step.state in {"waits", "blocked"}]
    if held:
        said = "; ".join(f"{step.path}: {step.reason}" for step in held)
        raise RefusedError(
            f"not all folders can be deleted now, so nothing was done: {said}",
            code="data_in_use",
            hint="see to that first, or leave --delete-data out and delete by hand what is to go",
        )
    doomed = [step.path for step in steps if step.can_be_done]
    if not doomed:
        return None
    return f"Delete {', '.join(doomed)} with all that is in {'it' if len(doomed) == 1 else 'them'}, for good?"
