"""``hpj storage``: file systems and partitions on this machine and on the clusters."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import CONTEXT, Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation, json_option, with_services
from hyperpod_jlab.cli.output import Table, print_fields, print_json, print_table
from hyperpod_jlab.cli.slow_steps import slow_steps
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import RefusedError, StorageError
from hyperpod_jlab.core.file_system import STATE_MEANINGS
from hyperpod_jlab.core.quantities import format_size
from hyperpod_jlab.features.storage.files import file_states, move
from hyperpod_jlab.features.storage.service import link_partition, open_storage
from hyperpod_jlab.run.clean import carry_out, plan_migration
from hyperpod_jlab.storage.home_link import NAME, remove_link

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.identity import Separation
    from hyperpod_jlab.clusters.mounts import MountInfo
    from hyperpod_jlab.core.file_system import Association, FileSystem, Verb
    from hyperpod_jlab.features.storage.files import Result
    from hyperpod_jlab.features.storage.service import PartitionLink, PathView, Side, StorageOverview
    from hyperpod_jlab.run.clean import MigrationPlan
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.storage.migration import MigrationResult

_HELP = """\
Show the file systems and partitions of this machine: which one stores runs, how much space is free, which other users have access and what
prevents it, what AWS reports, and where each cluster mounts the partition.

With PATH, show the same for a file or folder. Below the mount point, a file on the partition has the same path on this machine and on the cluster.
"""

_EXAMPLES = (
    "hpj storage",
    "hpj storage --json",
    "hpj storage ~/fsx/data/train.csv",
    "hpj storage state ~/fsx/data/*.tar",
)

COMMANDS = (
    Section(
        "Files linked to S3",
        (
            Entry("state", "features.storage.commands", "Show whether the data of files is here or in S3."),
            Entry("hydrate", "features.storage.commands", "Restore the data of released files from S3."),
            Entry("release", "features.storage.commands", "Free the space of files that have a copy in S3."),
        ),
    ),
    Section(
        "Runs of older versions",
        (Entry("migrate", "features.storage.commands", "Move your runs to the layout of this version."),),
    ),
    Section(
        "File browser",
        (
            Entry("link", "features.storage.commands", "Link to the partition from the home folder."),
            Entry("unlink", "features.storage.commands", "Remove the link."),
        ),
    ),
)

_no_aws = click.option("--no-aws", is_flag=True, help="Do not query AWS.")


class StorageGroup(LazyGroup):
    """The group of ``hpj storage``: an argument that is not a subcommand is a path."""

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

    async def look(hyperpod: Hyperpod) -> StorageOverview:
        return await open_storage(hyperpod, ask_aws=not no_aws).overview()

    overview = with_services(look, asking=True)
    if invocation().as_json:
        print_json(overview)
        return

    print_overview(overview)


@click.command("path", cls=HpjCommand, hidden=True, context_settings=CONTEXT)
@click.argument("path", type=click.Path(path_type=Path))
@_no_aws
@click.pass_context
def show_path(context: click.Context, path: Path, no_aws: bool) -> None:
    """Show a path."""
    parent_options = context.parent.params if context.parent else {}
    asks = not (no_aws or parent_options.get("no_aws"))
    absolute = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - links stay as they are named

    async def look(hyperpod: Hyperpod) -> PathView:
        return await open_storage(hyperpod, ask_aws=asks).view_path(absolute)

    view = with_services(look, asking=True)
    if invocation().as_json:
        print_json(view)
        return

    print_path(view)


# --------------------------------------------------------------------------------------------------
# ``hpj storage state``, ``hydrate`` and ``release``: files on file systems that are linked to S3.

_PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))

_CONTINUE_HELP = "A file that fails is listed with the reason; the others continue."
_LFS_ONLY_HELP = "Requires the Lustre program lfs on this machine."


@click.command(
    cls=HpjCommand,
    help="Show where the data of files is, on a Lustre file system that is linked to S3: here, in S3, in both, or in transfer.",
    examples=("hpj storage state /fsx/alice/data/*.tar",),
)
@_PATHS
def state(paths: tuple[Path, ...]) -> None:
    """Show states."""

    async def work(_: Hyperpod) -> list[Result]:
        return await file_states(_absolute_paths(paths))

    _print_result(with_services(work, asking=True))


@click.command(
    cls=HpjCommand,
    help=f"Restore the data of released files from S3 before it is needed. {_CONTINUE_HELP}\n\n{_LFS_ONLY_HELP}",
    examples=("hpj storage hydrate /fsx/alice/data/*.tar",),
)
@_PATHS
def hydrate(paths: tuple[Path, ...]) -> None:
    """Bring files back."""
    _move("hydrate", paths)


@click.command(
    cls=HpjCommand,
    help=f"Free the space of files on the file system. Their data stays in S3 and is restored when they are read. {_CONTINUE_HELP}\n\n{_LFS_ONLY_HELP}",
    examples=("hpj storage release /fsx/alice/data/*.tar",),
)
@_PATHS
def release(paths: tuple[Path, ...]) -> None:
    """Take files off."""
    _move("release", paths)


def _move(verb: Verb, paths: tuple[Path, ...]) -> None:
    async def work(_: Hyperpod) -> list[Result]:
        return await move(verb, _absolute_paths(paths))

    _print_result(with_services(work, asking=True))


def _absolute_paths(paths: tuple[Path, ...]) -> list[Path]:
    """The paths as absolute paths without duplicates; links are not resolved."""
    absolute = (Path(os.path.abspath(path.expanduser())) for path in paths)  # noqa: PTH100
    return list(dict.fromkeys(absolute))


def _print_result(results: list[Result]) -> None:
    """Print the result of each path.

    Raises:
        RefusedError: Some were refused.
    """
    if invocation().as_json:
        print_json({"files": results})
    else:
        print_table(Table(("FILE", "STATE", "RESULT", "MEANING"), list(map(_row, results))))
    refused = [result for result in results if result.done == "refused"]
    if refused:
        first = refused[0]
        raise RefusedError(
            f"{first.path}: {first.reason}" + (f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""),
            code="file_refused",
            hint=first.hint,
            detail={"files": [result.path for result in refused]},
        )


def _row(result: Result) -> tuple[str, str, str, str]:
    file = result.file
    reason = result.reason or (STATE_MEANINGS[file.state] if file else "")
    if file is not None and file.progress:
        reason = f"{reason}, {file.progress}"
    return result.path, file.state if file else "-", result.done, reason


# --------------------------------------------------------------------------------------------------
# ``hpj storage link`` and ``unlink``: the partition in Jupyter's file browser.

_LINK_HELP = f"""\
Create a link to the storage partition in the home folder, so that you can open it in the file browser. The default NAME is {NAME}.

An existing link is kept. Any other file of that name is not changed. Removing the link does not remove files of the partition.
"""


@click.command(cls=HpjCommand, help=_LINK_HELP, examples=("hpj storage link", "hpj storage link fsx"))
@click.argument("name", default=NAME)
def link(name: str) -> None:
    """Make the link."""

    async def work(hyperpod: Hyperpod) -> PartitionLink:
        return await link_partition(open_storage(hyperpod), hyperpod.partition, Path.home(), name)

    linked = with_services(work, asking=True)
    _print_link(linked.path, linked.partition, "made" if linked.made else "already there")


@click.command(
    cls=HpjCommand,
    help=f"Remove the link to the storage partition from the home folder. The partition is not changed. The default NAME is {NAME}.",
    examples=("hpj storage unlink",),
)
@click.argument("name", default=NAME)
def unlink(name: str) -> None:
    """Remove the link."""

    async def work(hyperpod: Hyperpod) -> Path:
        remove_link(Path.home(), hyperpod.partition.root, name)
        return hyperpod.partition.root

    root = with_services(work)
    _print_link(Path.home() / name, root, "removed")


def _print_link(path: Path, root: Path, verb: str) -> None:
    if invocation().as_json:
        print_json({"link": str(path), "partition": str(root), "done": verb})
    else:
        print(printable(f"{path} -> {root}: {verb}"))


# --------------------------------------------------------------------------------------------------
# ``hpj storage migrate``: move runs to the current layout.

_STORAGE_MIGRATE_HELP = """\
Move your runs to the layout of this version. On a shared partition, each user has a folder, .hyperpod-UID, to which no other user can
write. Older versions stored the runs of all users in one folder.

Run ids do not change. Runs that have not ended are not moved; run the command again later. You can interrupt and repeat it safely.
"""


@click.command(
    cls=HpjCommand, help=_STORAGE_MIGRATE_HELP, examples=("hpj storage migrate --dry-run", "hpj storage migrate")
)
@click.option("--dry-run", is_flag=True, help="List what would be moved. Move nothing.")
def migrate(dry_run: bool) -> None:
    """Move runs."""
    plan, result = with_services(lambda hyperpod: _plan_and_migrate(hyperpod, dry_run=dry_run))
    if invocation().as_json:
        print_json(_document(plan, result))
    else:
        _print(plan, result)
    if result is not None and result.problems:
        run_id, reason = result.problems[0]
        raise StorageError(
            f"{run_id} could not be moved: {reason}",
            hint="it stays readable in its old folder; ask an administrator to check that folder",
            detail={"run_id": run_id},
        )


async def _plan_and_migrate(hyperpod: Hyperpod, *, dry_run: bool) -> tuple[MigrationPlan, MigrationResult | None]:
    async with slow_steps("looking for runs") as steps:
        plan = await plan_migration(hyperpod)
        if dry_run:
            return plan, None
        steps.next("moving")
        return plan, await carry_out(hyperpod, plan)


def _print(plan: MigrationPlan, result: MigrationResult | None) -> None:
    for run_id, reason in plan.kept:
        print(f"{run_id} is kept: {reason}", file=sys.stderr)
    if result is None:
        for run_id in plan.runs:
            print(run_id)
        print(f"{len(plan.runs)} runs would be moved", file=sys.stderr)
        return
    for run_id, reason in result.problems:
        print(f"{run_id} is kept: {printable(reason)}", file=sys.stderr)
    print(f"{len(result.runs)} runs and {result.code} files of code moved", file=sys.stderr)


def _document(plan: MigrationPlan, result: MigrationResult | None) -> dict[str, object]:
    problems = [*plan.kept, *(result.problems if result is not None else ())]
    return {
        "moved": result is not None,
        "runs": list(plan.runs if result is None else result.runs),
        "kept": [{"run_id": run_id, "reason": reason} for run_id, reason in problems],
        "code": 0 if result is None else result.code,
    }


# --------------------------------------------------------------------------------------------------
# Text output of file systems, partitions and their paths on each side.

_FILE_SYSTEM_TITLES = (*("MOUNTED AT", "KIND", "FOLDER", "FREE", "SIZE", "ACCESS", "RUNS", "ISOLATION"), "OTHERS")


def print_overview(overview: StorageOverview) -> None:
    """All storage here."""
    partition = overview.partition
    print_fields(
        [
            ("path", partition.path),
            ("chosen by", partition.chosen_by),
            ("runs and code", partition.folder),
            ("shared", "yes" if partition.shared else "no"),
            *_file_system_fields(partition),
            ("index", partition.index or "in memory only"),
            ("problem", partition.problem),
        ]
    )
    print()
    rows = [_storage_tables_row(info) for info in overview.file_systems]
    print_table(Table(_FILE_SYSTEM_TITLES, rows))
    _print_aws(overview.file_systems)
    print()
    _print_sides(overview.clusters, in_studio=overview.studio)
    _print_evidence(partition)
    _print_separation(overview.separation)
    separation = overview.separation
    _print_notes([*(separation.sentences if separation else ()), *overview.notes])


def _print_separation(separation: Separation | None) -> None:
    """Print the owners of the folders above our own, and whether other users are kept out."""
    if separation is None:
        return
    print()
    rows = [
        (str(parent.path), str(parent.uid), f"{parent.mode:04o}", parent.reason if parent.problem else "ok")
        for parent in separation.parents
    ]
    print_table(Table(("FOLDER ABOVE", "OWNER", "MODE", ""), rows))


def print_path(view: PathView) -> None:
    """One path."""
    info = view
    print_fields(
        [
            ("path", info.path),
            ("runs stored here", "yes" if info.runs_go_here else "no"),
            *_file_system_fields(info),
            ("on the file system", info.path_there),
            ("problem", info.problem),
        ]
    )
    _print_aws([info])
    print()
    _print_sides(view.clusters, in_studio=view.studio)
    _print_evidence(info)
    _print_notes(view.notes)


def _file_system_fields(info: MountInfo) -> list[tuple[str, str | None]]:
    isolation = info.isolation
    readers = None if isolation is None else ", ".join(isolation.readers) or "no permission"
    return [
        ("file system", f"{info.kind or 'unknown'} at {info.mount}"),
        ("mounted from", info.source),
        ("access", _access(info)),
        ("free", f"{_free(info)} of {_size(info)}" if info.room else None),
        ("isolation", isolation.words if isolation else None),
        ("others", readers),
    ]


def _storage_tables_row(info: MountInfo) -> Sequence[str]:
    isolation = info.isolation
    readers = ", ".join(isolation.readers) if isolation else ""
    return (
        info.path,
        info.kind or "-",
        info.mounted_folder or "-",
        _free(info),
        _size(info),
        _access(info),
        "stored here" if info.runs_go_here else "-",
        isolation.words if isolation else "-",
        info.problem or readers or ("no permission" if isolation else "-"),
    )


def _access(info: MountInfo) -> str:
    if info.read_only:
        return "read only"
    if info.writable is None:
        return "not created yet" if not info.exists and info.problem is None else "-"
    return "read and write" if info.writable else "not writable for you"


def _free(info: MountInfo) -> str:
    return format_size(info.room.free) if info.room else "-"


def _size(info: MountInfo) -> str:
    return format_size(info.room.total) if info.room else "-"


def _print_aws(infos: Sequence[MountInfo]) -> None:
    for file_system in dict.fromkeys(info.aws for info in infos if info.aws is not None):
        print()
        print_fields(
            [
                ("at AWS", file_system.name),
                ("state", ": ".join(filter(None, (file_system.state, file_system.problem)))),
                ("type", _type(file_system)),
                ("capacity", format_size(file_system.capacity) if file_system.capacity else None),
                ("throughput", file_system.throughput),
                ("maintenance", file_system.maintenance),
                ("root of a client", _squash(file_system)),
                *(("linked", _association(link)) for link in file_system.associations or ()),
            ]
        )


def _type(file_system: FileSystem) -> str:
    version = f"Lustre {file_system.version}" if file_system.version else None
    return " ".join(filter(None, (file_system.deployment, file_system.storage_type, version)))


def _squash(file_system: FileSystem) -> str:
    return f"is mapped to {file_system.root_squash}" if file_system.root_squash else "has full access"


def _association(link: Association) -> str:
    parts = [f"{link.folder} with {link.repository}", link.state, link.problem]
    if link.imports:
        parts.append(f"imports {' '.join(link.imports)}")
    if link.exports:
        parts.append(f"exports {' '.join(link.exports)}")
    return ", ".join(part for part in parts if part)


def _print_sides(sides: Sequence[Side], *, in_studio: bool) -> None:
    column = "STUDIO" if in_studio else "HERE"
    rows = [
        (side.cluster, side.orchestrator, side.side, side.here or "-", side.there or "-", side.reason or "")
        for side in sides
    ]
    print_table(Table(("CLUSTER", "ORCHESTRATOR", "SIDE", column, "ON THE CLUSTER", "REASON"), rows))


def _print_evidence(info: MountInfo) -> None:
    if info.isolation is None:
        return
    print(f"\nisolation: {info.isolation.words}, because")
    for line in info.isolation.evidence:
        print(f"  - {printable(line)}")


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)
