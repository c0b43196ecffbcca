"""``hpj init``: prepare a project for an editor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import CONTEXT, Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import ConflictError
from hyperpod_jlab.features.code_editor.service import tasks_text, write_tasks

if TYPE_CHECKING:
    from hyperpod_jlab.features.code_editor.service import WriteResult

_GROUP = """\
Prepare a project for an editor.
"""
_CODE_EDITOR = """\
Add tasks for Code Editor (VS Code) to a project, for example to run the open file on the cluster or to follow the last run.

The tasks are added to .vscode/tasks.json. Existing tasks and comments are kept. If the file cannot be changed without loss, it stays as it is, and
the tasks are printed for you to paste. To run a task in the editor, choose Terminal > Run Task.
"""


@click.group(
    "init",
    cls=LazyGroup,
    sections=(
        Section(
            "Editors",
            (
                Entry(
                    "code-editor",
                    "features.code_editor.commands",
                    "Add tasks for Code Editor.",
                ),
            ),
        ),
    ),
    help=_GROUP,
    context_settings=CONTEXT,
    examples=("hpj init code-editor",),
)
def init() -> None:
    """Prepare a project."""


@click.command(
    "code-editor",
    cls=HpjCommand,
    help=_CODE_EDITOR,
    examples=(
        "hpj init code-editor",
        "hpj init code-editor ~/project --cluster ml-cluster",
        "hpj init code-editor --print",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="[FOLDER]")
@click.option(
    "--cluster",
    type=CLUSTER,
    help="Cluster to submit files to. Default: the configured default cluster at the time a task runs.",
)
@click.option("--replace", is_flag=True, help="Replace tasks that have the same names.")
@click.option("--print", "only_print", is_flag=True, help="Print the tasks. Write nothing.")
def code_editor(folder: Path, cluster: str | None, replace: bool, only_print: bool) -> None:
    """Write the tasks."""
    if only_print:
        _print(cluster)
        return
    try:
        result = write_tasks(folder, cluster, replace=replace)
    except ConflictError:
        if not invocation().as_json:
            _print(cluster)
        raise
    if invocation().as_json:
        print_json(
            {
                "path": str(result.path),
                "added": list(result.added),
                "replaced": list(result.replaced),
                "kept": list(result.kept),
            }
        )
    else:
        _tell(result)


def _print(cluster: str | None) -> None:
    if invocation().as_json:
        print_json({"text": tasks_text(cluster)})
    else:
        click.echo(tasks_text(cluster), nl=False)


def _tell(result: WriteResult) -> None:
    parts = [
        f"{len(labels)} {verb}"
        for verb, labels in (
            ("added", result.added),
            ("replaced", result.replaced),
            ("already there", result.kept),
        )
        if labels
    ]
    print(printable(f"{result.path}: tasks: {', '.join(parts)}"))
