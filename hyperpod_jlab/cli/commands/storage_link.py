"""``hpj storage link`` and ``unlink``: the partition in Jupyter's file browser."""

from __future__ import annotations

from pathlib import Path

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.errors import DeniedError
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.storage.home_link import NAME, make_link, remove_link

_LINK_HELP = f"""\
Make a link in the home folder to the storage partition, so that it can be opened in the file browser. NAME is {NAME} when it is left out.

A link that is there already stays; anything else of that name is left alone. Removing the link removes nothing of the partition.
"""


@click.command(
    cls=HpjCommand, help=_LINK_HELP, examples=("hpj storage link", "hpj storage link fsx")
)
@click.argument("name", default=NAME)
def link(name: str) -> None:
    """Make the link."""

    async def work(hyperpod: Hyperpod) -> tuple[Path, bool]:
        partition = (await hyperpod.storage().overview()).partition
        if not partition.offered:
            raise DeniedError(
                f"{partition.path} is the private partition of {partition.private_of}, and everybody in this shared space would get at it by the link",
                code="private_partition",
                hint="name another folder as path under [storage] in the configuration",
                detail={"path": partition.path},
            )
        hyperpod.partition.prepare()
        return hyperpod.partition.root, make_link(Path.home(), hyperpod.partition.root, name)

    root, made = with_services(work, asking=True)
    _tell(Path.home() / name, root, "made" if made else "there already")


@click.command(
    cls=HpjCommand,
    help=f"Remove the link to the storage partition from the home folder; the partition stays. NAME is {NAME} when it is left out.",
    examples=("hpj storage unlink",),
)
@click.argument("name", default=NAME)
def unlink(name: str) -> None:
    """Remove the link."""

    async def work(hyperpod: Hyperpod) -> Path:
        remove_link(Path.home(), hyperpod.partition.root, name)
        return hyperpod.partition.root

    root = with_services(work)
    _tell(Path.home() / name, root, "removed")


def _tell(path: Path, root: Path, done: str) -> None:
    if invocation().as_json:
        print_json({"link": str(path), "partition": str(root), "done": done})
    else:
        print(printable(f"{path} -> {root}: {done}"))
