"""``hpj submit``: submit a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.cli.invocation import with_services
from hyperpod_jlab.cli.parameters import RUN
from hyperpod_jlab.cli.sending import SubmitMode, can_ask, send, sending_options
from hyperpod_jlab.cli.spec_options import (
    OPTIONS,
    ProgramCommand,
    add_spec_options,
    no_source_error,
    options_to_data,
    parse_spec,
    program_arguments,
    read_spec_file,
    source_data,
)
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.nested import merge
from hyperpod_jlab.core.run_id import new_run_id, split_run_id

if TYPE_CHECKING:
    from hyperpod_jlab.run.services import Hyperpod

_HELP = """\
Submit a notebook, a script or a command to a cluster, and print the run's id.

SOURCE is a notebook (.ipynb), a Python file (.py), an sbatch script (.sbatch) or a manifest (.yaml). Use -c for a shell command.
Arguments after -- are passed to your program. The files of the source's project (its git repository or folder) are included, except
those that .gitignore and .hyperpodignore exclude.

Your environment variables are not passed on. Set variables with --env and secrets with --secret.
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
@click.option("-c", "--command", metavar="COMMAND", help="Run this command with /bin/bash, instead of SOURCE.")
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the spec from a JSON or TOML file. Options override it.",
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
    """Submit a run."""
    from hyperpod_jlab.clusters.configuration import current_folder
    from hyperpod_jlab.run.submit import Request

    if len(source) > 1:
        raise InvalidInputError(
            f"only one source can be submitted at a time; '{source[1][:60]}' is a second one",
            code="usage",
            hint="put arguments for your program after --, such as: hpj submit train.py -- --lr 0.1",
        )

    accept_cost = options.pop("accept_cost")
    source_spec = source_data(source[0] if source else None, command)
    file_data = read_spec_file(spec) if spec is not None else {}
    option_data, option_names = options_to_data(options)
    data = merge(file_data, option_data)
    data["source"] = _source(source_spec, file_data.get("source"), option_data.get("source", {}))
    program = program_arguments()
    if program is not None:
        data["args"] = program
    request = Request(
        parse_spec(data, option_names, None if spec is None else str(spec)),
        cluster=cluster,
        run_id=run_id if run_id is not None else new_run_id(),
        base=current_folder(),
        accept_cost=accept_cost,
        interpreter=_active_python(),
    )
    send(request, SubmitMode(dry_run, wait, follow))


def _active_python() -> str | None:
    """The Python of the virtual or conda environment that is active in the shell."""
    folders = [os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    paths = [Path(folder, "bin", "python") for folder in folders if folder]
    return next((str(path) for path in paths if os.access(path, os.X_OK)), None)


def _source(source_spec: dict[str, Any] | None, from_file: Any, options: dict[str, Any]) -> Any:
    """The source: the command line's arguments override the file's, and options override both."""
    if source_spec is None and from_file is None:
        raise no_source_error()
    if from_file is not None and not isinstance(from_file, dict):
        return from_file  # the model reports the error
    source = dict(from_file or {})
    if source_spec is not None:
        source = {**source, **source_spec} if source.get("kind") == source_spec["kind"] else source_spec
    if options and source.get("kind") != "notebook":
        field = ("source", next(iter(options)))
        flag = next(one.option.flag for one in OPTIONS.values() if one.path == field)
        raise InvalidInputError(
            f"{flag} can be used only with a notebook",
            code="invalid_spec",
            hint="leave it out, or submit a .ipynb file",
            detail={"field": f"source.{next(iter(options))}", "option": flag},
        )
    return {**source, **options}


add_spec_options()(submit)


# --------------------------------------------------------------------------------------------------
# ``hpj clone``: submit a run again, with the same code and other options.

_CLONE_HELP = """\
Submit a run again, with the spec and the code of the original run, and print the new run's id. Options override the old spec.
Arguments after -- replace the old arguments.

The code of another user's run would run with your permissions, so you must confirm it: on a terminal you are asked; otherwise pass
--trust-owner with the user's name.

RUN is a run id, the beginning of one, or 'last'. A child of an array (ID.3) is submitted as an array with that one index.
"""

_CLONE_EXAMPLES = (
    "hpj clone last --follow",
    "hpj clone 20261121-120455-k3x9qd --nodes 4 --time-limit 8h",
    "hpj clone last -- --lr 0.01",
)


@click.command(cls=ProgramCommand, help=_CLONE_HELP, examples=_CLONE_EXAMPLES)
@click.argument("run", type=RUN)
@sending_options
@click.option(
    "--trust-owner",
    metavar="NAME",
    help="Run the code of this other user with your permissions. Read the code first: 'hpj show RUN' prints its folder.",
)
def clone(
    run: str,
    cluster: str | None,
    run_id: str | None,
    dry_run: bool,
    wait: bool,
    follow: bool,
    trust_owner: str | None,
    **options: Any,
) -> None:
    """Clone a run."""
    from hyperpod_jlab.clusters.configuration import current_folder
    from hyperpod_jlab.run.submit import Request

    accept_cost = options.pop("accept_cost")
    option_data, option_names = options_to_data(options)
    old_id, old_cluster, data, owner = with_services(lambda hyperpod: _old(hyperpod, run))
    parent, index = split_run_id(old_id)
    if index is not None:
        data["array"] = str(index)
    data = merge(data, option_data)
    program = program_arguments()
    if program is not None:
        data["args"] = program
    request = Request(
        parse_spec(data, option_names, f"the spec of {parent}"),
        cluster=cluster if cluster is not None else old_cluster,
        run_id=run_id if run_id is not None else new_run_id(),
        base=current_folder(),
        accept_cost=accept_cost,
        clone_of=parent,
        trust_owner=trust_owner or (None if dry_run else _confirmed(parent, owner)),
    )
    send(request, SubmitMode(dry_run, wait, follow))


def _confirmed(run_id: str, owner: str | None) -> str | None:
    """The owner of the run, after the user confirmed at the terminal that the code is to run."""
    if owner is None or not can_ask():
        return None
    question = f"The code of {run_id} ({printable(owner)}) may belong to another user. Run it with your permissions?"
    return owner if click.confirm(question, err=True) else None


async def _old(hyperpod: Hyperpod, text: str) -> tuple[str, str, dict[str, Any], str | None]:
    """The old run's id, cluster and spec, and its owner if its code may be another user's."""
    from hyperpod_jlab.cli.naming import find_run
    from hyperpod_jlab.storage.owners import user_name

    run_id = await find_run(hyperpod, text)
    bundle = hyperpod.runs.bundle(run_id)
    owner = None if bundle.is_own and not bundle.is_suspect else user_name(bundle.owner)
    return run_id, bundle.head().cluster, bundle.spec().model_dump(mode="json"), owner


# The code already exists: options that select files do not apply.
add_spec_options(excluded={"source", "files"})(clone)

for parameter in clone.params:
    if isinstance(parameter, click.Option) and parameter.name == "cluster":
        parameter.help = "Cluster to submit to. Default: the cluster of the original run."
