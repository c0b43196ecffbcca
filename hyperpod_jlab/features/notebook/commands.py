"""``hpj notebook``: save the executed notebook of a run."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import ConflictError, StorageError
from hyperpod_jlab.storage import descent

if TYPE_CHECKING:
    from hyperpod_jlab.features.notebook.service import ExecutedNotebook
    from hyperpod_jlab.run.services import Hyperpod

_HELP = """\
Save the executed notebook of a run: the cells as they were submitted, with the text, tables and figures that a rank has put out so far.

RUN is a run id, the beginning of one, or 'last'. Open the file in JupyterLab or VS Code. Its outputs are not trusted: scripts in them do not run.

An existing file is replaced only if this command saved it from the same run and it has not changed since. The file has a digest of its content to tell this.
"""


@click.command(cls=HpjCommand, help=_HELP, examples=("hpj notebook last", "hpj notebook last -o result.ipynb --rank 3"))
@click.argument("run", type=RUN)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="File to write; - is standard output. Default: NAME-RUN.ipynb in this folder, with the rank and the attempt if you choose them.",
)
@click.option(
    "--rank", type=click.IntRange(min=0), default=0, metavar="R", help="Rank whose outputs are saved. Default: 0."
)
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Attempt. Default: the newest.")
@click.option(
    "--force", is_flag=True, help="Replace a file that is not from this run, or that has changed since it was saved."
)
def notebook(run: str, output: str | None, rank: int, attempt: int | None, force: bool) -> None:
    """Save the executed notebook."""
    from hyperpod_jlab.features.notebook.service import read_executed_notebook

    async def read(hyperpod: Hyperpod) -> ExecutedNotebook:
        return await read_executed_notebook(hyperpod, await find_run(hyperpod, run), rank, attempt)

    executed = with_services(read, asking=True)
    metadata = executed.document["metadata"]["hyperpod"]
    metadata["sha256"] = _digest(executed.document)
    if "not_shown" in metadata:
        sys.stderr.write(f"warning: some outputs are missing: {metadata['not_shown']}\n")
    text = json.dumps(executed.document, indent=1, ensure_ascii=False) + "\n"
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output or _default_name(executed, attempt))
    target = _target(path)
    if not force:
        _check_replaceable(path, executed.run_id)
    try:
        descent.replace(target, text.encode("utf-8", "surrogatepass"), mode=0o644)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
    if invocation().as_json:
        print_json({"run_id": executed.run_id, "rank": executed.rank, "attempt": executed.attempt, "path": str(path)})
        return
    print(printable(f"{path}{'' if executed.ended else ' (the run continues)'}"))


def _default_name(executed: ExecutedNotebook, attempt: int | None) -> str:
    parts = [Path(executed.name).stem, executed.run_id]
    parts += [f"rank-{executed.rank}"] if executed.rank else []
    parts += [f"attempt-{attempt}"] if attempt is not None else []
    return "-".join(parts) + ".ipynb"


def _digest(document: dict[str, Any]) -> str:
    """The digest of what a notebook's cells say: saving it in an editor changes other metadata and splits text into lines."""
    cells = [
        [
            cell["cell_type"],
            _joined(cell["source"]),
            _joined(cell.get("outputs", [])),
            _joined(cell.get("attachments", {})),
            cell["metadata"].get("tags", []),
        ]
        for cell in document["cells"]
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def _joined(value: Any) -> Any:
    """The same without lists of lines. An empty text is an empty list, as editors write it."""
    if isinstance(value, dict):
        return {key: _joined(item) for key, item in value.items()}
    if isinstance(value, list):
        is_text = bool(value) and all(isinstance(item, str) for item in value)
        return "".join(value) if is_text else [_joined(item) for item in value]
    return [] if value == "" else value


def _target(path: Path) -> Path:
    """The file that is written, after links.

    Raises:
        ConflictError: There is something else than a regular file, such as a device, or a link to nothing.
    """
    try:
        is_regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        is_regular = not path.is_symlink()
    except OSError:  # writing tells why
        is_regular = True
    if is_regular:
        return Path(os.path.realpath(path))
    raise ConflictError(
        f"{path} is not a regular file",
        code="not_a_file",
        hint="give another file with -o; -o - writes to standard output",
        detail={"path": str(path)},
    )


def _check_replaceable(path: Path, run_id: str) -> None:
    """Check that a file does not exist, or was saved from the same run and has not changed since."""
    try:
        document = json.loads(descent.read_named(path))
        metadata = document["metadata"]["hyperpod"]
        is_same_run = metadata["run_id"] == run_id
        is_unchanged = metadata.get("sha256") == _digest(document)
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_same_run = is_unchanged = False
    if is_same_run and is_unchanged:
        return
    raise ConflictError(
        f"{path} has changed since hpj saved it" if is_same_run else f"{path} exists, and is not from this run",
        code="file_changed" if is_same_run else "file_exists",
        hint="give another file with -o, or replace it with --force",
        detail={"path": str(path)},
    )
