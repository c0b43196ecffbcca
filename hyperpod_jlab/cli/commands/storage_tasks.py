"""``hpj storage import``, ``tasks`` and ``cancel``: what AWS does to files of file systems that are linked to S3."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from hyperpod_jlab.cli.commands.storage_files import PATHS, REPORT, tell, whole
from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, moment, print_json, print_table
from hyperpod_jlab.model.repository_task import RepositoryTask
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.repository_tasks import Moved, TaskOptions

_TITLES = ("TASK", "DOES", "STATE", "FILES", "FAILED", "ASKED", "PATHS")

_region = click.option(
    "--region",
    metavar="REGION",
    help="AWS region. Default: $AWS_REGION, or that of the AWS configuration or of Studio.",
)

_IMPORT_HELP = """\
Take over what is new or has changed in S3: names and metadata of files in linked folders. Their bytes come when they are read, or by hpj storage hydrate
where Lustre's program is. AWS does it by a data repository task, which goes on after the command has ended: hpj storage tasks.
"""

_TASKS_HELP = """\
Show data repository tasks, by which AWS exports, imports and releases files, and how far they are: those of the file systems that are mounted here,
or of all in the region where the mounts do not name theirs. With TASK only these.
"""


@click.command(
    "import", cls=HpjCommand, help=_IMPORT_HELP, examples=("hpj storage import ~/fsx/data",)
)
@PATHS
@REPORT
@_region
def import_(paths: tuple[Path, ...], report: str | None, region: str | None) -> None:
    """Take over what is new in S3."""

    async def work(hyperpod: Hyperpod) -> Moved:
        options = TaskOptions(report=report)
        return await hyperpod.repository_tasks(region).begin("import", whole(paths), options)

    tell(with_services(work, asking=True))


@click.command(
    cls=HpjCommand,
    help=_TASKS_HELP,
    examples=("hpj storage tasks", "hpj storage tasks task-0123456789abcdef0 --json"),
)
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@_region
def tasks(tasks: tuple[str, ...], region: str | None) -> None:
    """Show tasks."""

    async def work(hyperpod: Hyperpod) -> list[RepositoryTask]:
        return await hyperpod.repository_tasks(region).known(tasks)

    found = with_services(work, asking=True)
    if invocation().as_json:
        print_json({"tasks": [task.to_dict() for task in found]})
    else:
        print_table(Table(_TITLES, list(map(_row, found))))


@click.command(
    cls=HpjCommand,
    help="Cancel a data repository task. Files that it has done stay done, and those that are under way are still done.",
    examples=("hpj storage cancel task-0123456789abcdef0",),
)
@click.argument("task")
@_region
def cancel(task: str, region: str | None) -> None:
    """Cancel a task."""

    async def work(hyperpod: Hyperpod) -> str:
        return await hyperpod.repository_tasks(region).cancel(task)

    state = with_services(work, asking=True)
    if invocation().as_json:
        print_json({"task": task, "state": state})
    else:
        print(f"{task}: {state}")


def _row(task: RepositoryTask) -> Sequence[str]:
    total, done = task.total, (task.succeeded or 0) + (task.failed or 0)
    words = ", ".join(task.paths) or "everything"
    if task.problem:
        words = f"{words}: {task.problem}"
    return (
        task.task_id,
        task.kind,
        task.state,
        "-" if total is None else f"{done}/{total}",
        "-" if task.failed is None else str(task.failed),
        moment(_seconds(task.created)),
        words,
    )


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
