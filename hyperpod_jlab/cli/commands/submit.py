"""``hpj submit``: send something to a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hyperpod_jlab.cli.program_words import ProgramCommand, program_words
from hyperpod_jlab.cli.sending import Ways, send, sending_options
from hyperpod_jlab.cli.source_words import no_source, source_data
from hyperpod_jlab.cli.spec_file import read_spec_file
from hyperpod_jlab.cli.spec_options import OPTIONS, add_spec_options, data_of, merge, parse_spec
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.run_id import new_run_id
from hyperpod_jlab.services.current_folder import current_folder
from hyperpod_jlab.services.submission import Request

_HELP = """\
Send a notebook, a script or a command to a cluster, and print the run's id.

SOURCE is a notebook (.ipynb), a Python file (.py), an sbatch script (.sbatch) or a manifest (.yaml); a shell command goes with -c.
What stands behind -- is for your program. The files of the source's project (its git repository or folder) go along, less what
.gitignore and .hyperpodignore name.

Nothing of your own environment goes along: name variables with --env and secrets with --secret.
"""

_EXAMPLES = (
    "hpj submit train.ipynb --cells 2-5,7 --nodes 2 --gpus-per-node 8 --follow",
    "hpj submit train.py --cluster ml-slurm --time-limit 2h -- --lr 0.1 --epochs 3",
    "hpj submit -c 'nvidia-smi; df -h' --nodes 4",
    "hpj submit sweep.py --array 0-9%4 --env SEED=1 --secret HF_TOKEN",
    "hpj submit train.ipynb --tag train --dry-run",
    "hpj submit --spec run.toml --nodes 8",
)


@click.command(cls=ProgramCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("source", nargs=-1, type=click.Path(), metavar="SOURCE")
@click.option(
    "-c", "--command", metavar="COMMAND", help="Run this with /bin/bash instead of a file."
)
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the spec from a JSON or TOML file; options go over what it says.",
)
@sending_options
def submit(
    source: tuple[str, ...],
    command: str | None,
    spec: Path | None,
    cluster: str | None,
    run_id: str | None,
    dry_run: bool,
    wait: bool,
    follow: bool,
    **options: Any,
) -> None:
    """Send a run."""
    if len(source) > 1:
        raise InvalidInputError(
            f"one thing is sent at a time, and '{source[1][:60]}' is a second one",
            code="usage",
            hint="arguments for your program come after --, as in: hpj submit train.py -- --lr 0.1",
        )
    chosen = source_data(source[0] if source else None, command)
    under = read_spec_file(spec) if spec is not None else {}
    over, given = data_of(options)
    data = merge(under, over)
    data["source"] = _source(chosen, under.get("source"), over.get("source", {}))
    words = program_words()
    if words is not None:
        data["args"] = words
    request = Request(
        parse_spec(data, given, None if spec is None else str(spec)),
        cluster=cluster,
        run_id=run_id if run_id is not None else new_run_id(),
        base=current_folder(),
    )
    send(request, Ways(dry_run, wait, follow))


def _source(chosen: dict[str, Any] | None, from_file: Any, options: dict[str, Any]) -> Any:
    """The source: the words of the command line over the file's, and the options over both."""
    if chosen is None and from_file is None:
        raise no_source()
    if from_file is not None and not isinstance(from_file, dict):
        return from_file  # the model says what is wrong with it
    found = dict(from_file or {})
    if chosen is not None:
        found = {**found, **chosen} if found.get("kind") == chosen["kind"] else chosen
    if options and found.get("kind") != "notebook":
        flag = OPTIONS[next(iter(options))].option.flag
        raise InvalidInputError(
            f"{flag} chooses cells of a notebook, and this is no notebook",
            code="invalid_spec",
            hint="leave it out, or send a .ipynb file",
            detail={"field": f"source.{next(iter(options))}", "option": flag},
        )
    return {**found, **options}


add_spec_options()(submit)
