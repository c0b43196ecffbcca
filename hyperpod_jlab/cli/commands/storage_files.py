"""``hpj storage state``, ``hydrate``, ``release`` and ``export``: files on file systems that are linked to S3."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import click

from hyperpod_jlab.cli.failure import CommandLineError
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_json, print_table
from hyperpod_jlab.model.errors import RefusedError
from hyperpod_jlab.model.file_state import MEANINGS, Verb
from hyperpod_jlab.services.byte_moves import Way, move
from hyperpod_jlab.services.file_states import Result, file_states
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.repository_tasks import Moved, TaskOptions

PATHS = click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(path_type=Path),
)

REPORT = click.option(
    "--report",
    metavar="S3-URI",
    help="Have AWS lay a list of the files that failed there: a place in the linked one. Default: none is made.",
)

_WAY = click.option(
    "--by",
    type=click.Choice(get_args(Way)),
    help="Lustre's program on this machine, or a task of AWS. Default: the program, and AWS where that is missing or not permitted.",
)

_UNUSED = click.option(
    "--unused-for",
    type=click.IntRange(0),
    metavar="DAYS",
    help="By AWS: only files that nobody has read or changed for so many days.",
)

_REST = "One that cannot be is named with the reason, and stops no other one."
_EITHER = "It takes Lustre's program lfs on this machine, or a task of AWS, which goes on after the command has ended: hpj storage tasks."
_LFS_ONLY = "It takes Lustre's program lfs on this machine."


@click.command(
    cls=HpjCommand,
    help="Show where the bytes of files are, on a Lustre file system that is linked to S3: here, in S3, in both, or on the way.",
    examples=("hpj storage state /fsx/alice/data/*.tar",),
)
@PATHS
def state(paths: tuple[Path, ...]) -> None:
    """Show states."""

    async def work(_: Hyperpod) -> Moved:
        return Moved(await file_states(whole(paths)))

    tell(with_services(work, asking=True))


@click.command(
    cls=HpjCommand,
    help=f"Bring the bytes of released files back from S3, before somebody waits for them. {_REST} {_LFS_ONLY}",
    examples=("hpj storage hydrate /fsx/alice/data/*.tar",),
)
@PATHS
@_WAY
def hydrate(paths: tuple[Path, ...], by: Way | None) -> None:
    """Bring files back."""
    _move("hydrate", paths, by, None)


@click.command(
    cls=HpjCommand,
    help=f"Take the bytes of files off the file system; they stay in S3, and come back when they are read. {_REST} {_EITHER}",
    examples=(
        "hpj storage release /fsx/alice/data/*.tar",
        "hpj storage release ~/fsx/data --by aws --unused-for 30",
    ),
)
@PATHS
@_WAY
@_UNUSED
@REPORT
def release(
    paths: tuple[Path, ...], by: Way | None, unused_for: int | None, report: str | None
) -> None:
    """Take files off."""
    chosen = unused_for is not None or report is not None
    _move("release", paths, by, TaskOptions(unused_for or 0, report) if chosen else None)


@click.command(
    cls=HpjCommand,
    help=f"Copy files to S3. {_REST} {_EITHER}",
    examples=("hpj storage export /fsx/alice/data/*.tar", "hpj storage export ~/fsx/data --by aws"),
)
@PATHS
@_WAY
@REPORT
def export(paths: tuple[Path, ...], by: Way | None, report: str | None) -> None:
    """Copy files."""
    _move("export", paths, by, TaskOptions(report=report) if report else None)


def _move(verb: Verb, paths: tuple[Path, ...], by: Way | None, options: TaskOptions | None) -> None:
    if by == "lfs" and options is not None:
        raise CommandLineError(
            "--report and --unused-for are for a task of AWS, not for Lustre's program",
            detail={"option": "--by"},
        )

    async def work(hyperpod: Hyperpod) -> Moved:
        return await move(verb, whole(paths), hyperpod.repository_tasks(), by, options)

    tell(with_services(work, asking=True))


def whole(paths: tuple[Path, ...]) -> list[Path]:
    """The paths as absolute ones, each once; links stay as they are named."""
    absolute = (Path(os.path.abspath(path.expanduser())) for path in paths)  # noqa: PTH100
    return list(dict.fromkeys(absolute))


def tell(moved: Moved) -> None:
    """Print what became of each path.

    Raises:
        HyperpodError: AWS refused some.
        RefusedError: Some were refused otherwise.
    """
    results = moved.results
    if invocation().as_json:
        files = [result.to_dict() for result in results]
        print_json({"files": files, "tasks": [task.to_dict() for task in moved.tasks]})
    else:
        print_table(Table(("FILE", "STATE", "DONE", "MEANING"), list(map(_row, results))))
    refused = [result for result in results if result.done == "refused"]
    if moved.errors:
        raise moved.errors[0]
    if refused:
        first = refused[0]
        raise RefusedError(
            f"{first.path}: {first.reason}"
            + (f", and {len(refused) - 1} more" if len(refused) > 1 else ""),
            code="file_refused",
            hint=first.hint,
            detail={"files": [result.path for result in refused]},
        )


def _row(result: Result) -> tuple[str, str, str, str]:
    file = result.file
    words = result.reason or (MEANINGS[file.state] if file else "")
    if file is not None and file.progress:
        words = f"{words}, {file.progress}"
    if result.task is not None:
        words = f"AWS does it by {result.task}"
    return result.path, file.state if file else "-", result.done, words
