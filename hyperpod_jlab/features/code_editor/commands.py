"""``hpj init code-editor``: tasks for Code Editor (VS Code's ``.vscode/tasks.json``, version 2.0.0) that submit the open file to a cluster."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from hyperpod_jlab.cli.group import CONTEXT, Entry, HpjCommand, LazyGroup, Section
from hyperpod_jlab.cli.invocation import invocation
from hyperpod_jlab.cli.output import print_json, print_notes
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.core.errors import InvalidInputError

TASKS_FILE = Path(".vscode", "tasks.json")
_TASKS = (
    ("HyperPod: run this file", ("submit", "${file}", "--follow"), True),
    ("HyperPod: show what would run", ("submit", "${file}", "--dry-run"), True),
    ("HyperPod: follow the last run", ("logs", "--follow", "last"), False),
    ("HyperPod: why does the last run wait?", ("why", "last"), False),
    ("HyperPod: cancel the last run", ("cancel", "last"), False),
)
"""Label, arguments of ``hpj``, and whether it takes a cluster."""

_INSTANCES = 99
"""The editor's default is one: while the log of a run is followed, no other file could be submitted."""

_HELP = """\
Write tasks for Code Editor (VS Code) into a project, for example to run the open file on the cluster or to follow the last run.

They are written to .vscode/tasks.json. If the project has this file, it stays as it is, and the tasks are printed for you to add. To run a task in the editor,
choose Terminal > Run Task.
"""
_ENTRY = Entry("code-editor", "features.code_editor.commands", "Add tasks for Code Editor.")


def tasks_text(cluster: str | None = None) -> str:
    """The file with the tasks. They start ``hpj`` without a shell, so file names need no quoting."""
    tasks = [
        {
            "label": label,
            "type": "process",
            "command": "hpj",
            "args": [*arguments, *(("--cluster", cluster) if cluster and sends else ())],
            "problemMatcher": [],
            "presentation": {"panel": "dedicated" if sends else "shared", "clear": False},
            "runOptions": {"instanceLimit": _INSTANCES},
        }
        for label, arguments, sends in _TASKS
    ]
    return json.dumps({"version": "2.0.0", "tasks": tasks}, indent=2, ensure_ascii=False) + "\n"


@click.group(
    "init",
    cls=LazyGroup,
    sections=(Section("Editors", (_ENTRY,)),),
    help="Prepare a project for an editor.",
    context_settings=CONTEXT,
    examples=("hpj init code-editor",),
)
def init() -> None:
    """Prepare a project."""


@click.command(
    "code-editor",
    cls=HpjCommand,
    help=_HELP,
    examples=("hpj init code-editor", "hpj init code-editor ~/project --cluster ml-cluster"),
)
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="[FOLDER]")
@click.option(
    "--cluster",
    type=CLUSTER,
    help="Cluster to submit files to. Default: the configured default cluster at the time a task runs.",
)
def code_editor(folder: Path, cluster: str | None) -> None:
    """Write the tasks, or print them."""
    path, text = folder / TASKS_FILE, tasks_text(cluster)
    try:
        if folder.is_dir():
            path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        is_written = True
    except OSError as error:
        if not (isinstance(error, FileExistsError) and os.path.lexists(path)):
            raise InvalidInputError(
                f"{path} cannot be written: {error.strerror}", detail={"field": "folder"}
            ) from error
        is_written = False
    if invocation().as_json:
        print_json({"path": str(path), "written": is_written, "text": text})
    elif is_written:
        print(f"{path}: {len(_TASKS)} tasks written")
    else:
        click.echo(text, nl=False)
        print_notes([f"{path} exists and stays as it is; add these tasks to its list `tasks`"])
