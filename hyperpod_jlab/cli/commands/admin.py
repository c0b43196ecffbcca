"""``hpj admin``: what administrators do. Not there yet, and says so."""

from __future__ import annotations

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.model.errors import UnsupportedError


@click.command(
    cls=HpjCommand,
    help="Wire up FSx for Lustre with SageMaker Studio, for administrators. Not in this version.",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[WORDS]...")
def admin(words: tuple[str, ...]) -> None:
    """Say that it is not there yet."""
    del words
    raise UnsupportedError(
        "this version has no admin commands yet",
        hint="mount the file system in Studio's settings; 'hpj storage' shows what this machine sees",
    )
