"""``hpj storage state``, ``hydrate``, ``release`` and ``export``: files on file systems that are linked to S3."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_json, print_table
from hyperpod_jlab.model.errors import RefusedError
from hyperpod_jlab.model.file_state import MEANINGS, Verb
from hyperpod_jlab.services.file_states import Result, file_states, move_bytes
from hyperpod_jlab.services.hyperpod import Hyperpod

_paths = click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(path_type=Path),
)

_REST = "One that cannot be is named with the reason, and stops no other one. It takes Lustre's program lfs on this machine."


@click.command(
    cls=HpjCommand,
    help="Show where the bytes of files are, on a Lustre file system that is linked to S3: here, in S3, in both, or on the way.",
    examples=("hpj storage state /fsx/alice/data/*.tar",),
)
@_paths
def state(paths: tuple[Path, ...]) -> None:
    """Show states."""
    _tell(with_services(lambda _: file_states(_whole(paths)), asking=True))


def _verb(verb: Verb, help_text: str) -> click.Command:
    @click.command(
        verb,
        cls=HpjCommand,
        help=f"{help_text} {_REST}",
        examples=(f"hpj storage {verb} /fsx/alice/data/*.tar",),
    )
    @_paths
    def command(paths: tuple[Path, ...]) -> None:
        async def work(_: Hyperpod) -> list[Result]:
            return await move_bytes(verb, _whole(paths))

        _tell(with_services(work, asking=True))

    return command


hydrate = _verb(
    "hydrate",
    "Bring the bytes of released files back from S3, before somebody waits for them.",
)
release = _verb(
    "release",
    "Take the bytes of files off the file system; they stay in S3, and come back when they are read.",
)
export = _verb("export", "Copy files to S3.")


def _whole(paths: tuple[Path, ...]) -> list[Path]:
    whole: Callable[[Path], Path] = lambda path: Path(os.path.abspath(path.expanduser()))  # noqa: E731, PTH100
    return list(dict.fromkeys(map(whole, paths)))


def _tell(results: list[Result]) -> None:
    if invocation().as_json:
        print_json({"files": [result.to_dict() for result in results]})
    else:
        print_table(Table(("FILE", "STATE", "DONE", "MEANING"), list(map(_row, results))))
    refused = [result for result in results if result.done == "refused"]
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
    return result.path, file.state if file else "-", result.done, words
