"""``hpj storage link`` and ``unlink``: the partition in Jupyter's file browser."""

from __future__ import annotations

from pathlib import Path

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.storage_link import Linked, link_partition
from hyperpod_jlab.storage.home_link import NAME, remove_link

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

    async def work(hyperpod: Hyperpod) -> Linked:
        return await link_partition(hyperpod.storage(), hyperpod.partition, Path.home(), name)

    linked = with_services(work, asking=True)
    _tell(linked.path, linked.partition, "made" if linked.made else "there already")


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
