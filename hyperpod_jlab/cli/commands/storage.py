"""``hpj storage``: file systems and partitions here, and as the clusters see them."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hyperpod_jlab.cli.group import CONTEXT, Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, json_option, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.storage import Overview, PathView

_HELP = """\
Show the file systems and partitions of this machine: which one runs go to, how much room there is, who else can read them and what keeps
others out, what AWS knows of them, and where each cluster sees the partition.

With a PATH the same is shown of that file or folder. A file on the partition has the same path behind these folders on both sides.
"""

_EXAMPLES = (
    "hpj storage",
    "hpj storage --json",
    "hpj storage ~/fsx/data/train.csv",
    "hpj storage state ~/fsx/data/*.tar",
)

COMMANDS = (
    Section(
        "Files on a file system that is linked to S3",
        (
            Entry("state", "storage_files", "Show where the bytes of files are."),
            Entry("hydrate", "storage_files", "Bring released files back from S3."),
            Entry("release", "storage_files", "Take files off that have a copy in S3."),
            Entry("export", "storage_files", "Copy files to S3."),
            Entry("import", "storage_tasks", "Take over what is new in S3."),
            Entry("tasks", "storage_tasks", "Show how far AWS is with them."),
            Entry("cancel", "storage_tasks", "Cancel a task of AWS."),
        ),
    ),
    Section(
        "Runs from an older version",
        (Entry("migrate", "storage_migrate", "Move your runs to the layout of this version."),),
    ),
    Section(
        "Open the partition in the file browser",
        (
            Entry("link", "storage_link", "Make a link in the home folder to the partition."),
            Entry("unlink", "storage_link", "Remove that link."),
        ),
    ),
)

_no_aws = click.option("--no-aws", is_flag=True, help="Do not ask AWS what it knows.")


class StorageGroup(LazyGroup):
    """The group of ``hpj storage``: a word that is none of its commands is a path."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or the one that shows a path."""
        if args[0] in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        return "path", show_path, args


@click.group(
    cls=StorageGroup,
    sections=COMMANDS,
    help=_HELP,
    examples=_EXAMPLES,
    invoke_without_command=True,
    subcommand_metavar="[PATH | COMMAND [ARGS]...]",
)
@json_option
@_no_aws
@click.pass_context
def storage(context: click.Context, no_aws: bool) -> None:
    """Show all storage."""
    if context.invoked_subcommand is not None:
        return

    async def look(hyperpod: Hyperpod) -> Overview:
        return await hyperpod.storage(ask_aws=not no_aws).overview()

    overview = with_services(look, asking=True)
    if invocation().as_json:
        print_json(overview.to_dict())
        return
    from hyperpod_jlab.cli.storage_tables import print_overview

    print_overview(overview)


@click.command("path", cls=HpjCommand, hidden=True, context_settings=CONTEXT)
@click.argument("path", type=click.Path(path_type=Path))
@_no_aws
@click.pass_context
def show_path(context: click.Context, path: Path, no_aws: bool) -> None:
    """Show a path."""
    given = context.parent.params if context.parent else {}
    asks = not (no_aws or given.get("no_aws"))
    absolute = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - links stay as they are named

    async def look(hyperpod: Hyperpod) -> PathView:
        return await hyperpod.storage(ask_aws=asks).of_path(absolute)

    view = with_services(look, asking=True)
    if invocation().as_json:
        print_json(view.to_dict())
        return
    from hyperpod_jlab.cli.storage_tables import print_path

    print_path(view)
