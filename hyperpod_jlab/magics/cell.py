"""``%%hyperpod``: the command that sends the cell below it. Its options are those of ``hpj submit``."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from hyperpod_jlab.cli.dry_run import print_findings, print_preview
from hyperpod_jlab.cli.following import last_word, raise_unless_succeeded, see_to_end
from hyperpod_jlab.cli.invocation import Invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.program_words import ProgramCommand, program_words
from hyperpod_jlab.cli.sending import Ways, interrupted_sending, sending_options
from hyperpod_jlab.cli.spec_file import read_spec_file
from hyperpod_jlab.cli.spec_options import (
    add_spec_options,
    data_of,
    merge,
    parse_spec,
    secrets_here,
)
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.magics.kernel import MAGIC, KernelCell
from hyperpod_jlab.magics.source import CellSource, cell_source
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.run_id import new_run_id
from hyperpod_jlab.services.current_folder import current_folder
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.logs import LogRequest
from hyperpod_jlab.services.submission import Preview, Request, Step

_HELP = """\
Send the lines below to a cluster as a job, and return at once: the cell's output is the run.

The job starts with an empty namespace: what earlier cells made is not there, unless --cells or --tag send them along. The files of the
notebook's folder go along, as with hpj submit. What stands behind -- is for sys.argv.
"""

_EXAMPLES = (
    "%%hyperpod --nodes 2 --processes-per-node 2",
    "%%hyperpod --cells 1-3 --time-limit 2h -o run",
    "%%hyperpod --cluster ml-slurm --gpus-per-node 8 --wait -- --lr 0.1",
    "%%hyperpod --nodes 4 --dry-run",
)

_OWN_HELP = {
    "wait": "Wait for the end; an error unless it succeeds. Interrupting the kernel ends the waiting, not the run.",
    "cells": "Cells to run before this one in the job, counted from 1 (without a notebook file: In [1], In [2], ...).",
    "tag": "Run the code cells with this tag before this one.",
}


@dataclass
class CellInvocation(Invocation):
    """One call of ``%%hyperpod``.

    Attributes:
        cell: The cell.
        announce: Shows the run that was sent, and puts it under the name if one is given.
    """

    cell: KernelCell | None = None
    announce: Callable[[str, str | None], None] | None = None


@click.command(cls=ProgramCommand, help=_HELP, examples=_EXAMPLES)
@click.option(
    "-o",
    "--run",
    "target",
    metavar="NAME",
    help="Put the run under this name: NAME.logs(), NAME.wait(), NAME.cancel().",
)
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the spec, but for its source, from a JSON or TOML file; options go over what it says.",
)
@sending_options
def run_cell(
    target: str | None,
    spec: Path | None,
    cluster: str | None,
    run_id: str | None,
    dry_run: bool,
    wait: bool,
    follow: bool,
    **options: Any,
) -> None:
    """Send the cell."""
    call = click.get_current_context().find_object(CellInvocation)
    if call is None or call.cell is None or call.announce is None:
        raise RuntimeError("there is no cell")
    if target is not None and (not target.isidentifier() or keyword.iskeyword(target)):
        raise InvalidInputError(
            f"-o: '{target[:60]}' is no name in Python",
            code="usage",
            detail={"option": "--run", "field": "target"},
        )
    base = current_folder()
    under = read_spec_file(spec) if spec is not None else {}
    over, given = data_of(options)
    source = cell_source(call.cell, over.pop("source", {}), again=run_id is not None)
    data = {**merge(under, over), "source": source.source}
    words = program_words()
    if words is not None:
        data["args"] = words
    request = Request(
        parse_spec(data, given, None if spec is None else str(spec)),
        cluster=cluster,
        run_id=run_id if run_id is not None else new_run_id(),
        base=base,
        notebook=source.content,
    )
    request = replace(request, secrets=_secrets(request))
    if dry_run:
        preview = with_services(lambda hyperpod: hyperpod.submitter.preview(request))
        findings = (*preview.findings, *source.findings)
        print_preview(replace(preview, findings=findings), as_json=call.as_json)
        return
    sent = with_services(lambda hyperpod: _submit(hyperpod, request, source, call))
    call.on_interrupt = None
    _see_through(sent, Ways(wait=wait, follow=follow), call, target)


def _secrets(request: Request) -> dict[str, str]:
    secrets = request.spec.environment.secrets
    return secrets_here([name for name, known in secrets.items() if not known], None)


async def _submit(
    hyperpod: Hyperpod, request: Request, source: CellSource, call: CellInvocation
) -> str:
    done: list[Step] = []
    call.on_interrupt = lambda: interrupted_sending(hyperpod, request, done)

    def tell(preview: Preview) -> None:
        found: list[Finding] = [*preview.findings, *source.findings]
        print_findings([finding for finding in found if finding.level == "warning"])

    return await hyperpod.submitter.submit(request, done.append, tell)


def _see_through(run_id: str, ways: Ways, call: CellInvocation, target: str | None) -> None:
    """Show the run, and do with it what else was asked for.

    Raises:
        RunEndedError: It was waited for and did not succeed.
    """
    if call.announce is not None:
        call.announce(run_id, target)
    if ways.wait or ways.follow:
        request = LogRequest(run_id, follow=True)
        run = with_services(lambda hyperpod: see_to_end(hyperpod, request, with_log=ways.follow))
        if call.as_json:
            print_json(run.to_dict())
        raise_unless_succeeded(run)
        if not call.as_json:
            click.echo(printable(last_word(run)))
    elif call.as_json:
        print_json(with_services(lambda hyperpod: hyperpod.runs.get(run_id)).to_dict())


def _add_options() -> None:
    """The spec's options; those that choose cells mean here the ones that go along."""
    add_spec_options()(run_cell)
    for parameter in run_cell.params:
        if isinstance(parameter, click.Option) and parameter.name in _OWN_HELP:
            parameter.help = _OWN_HELP[parameter.name]


_add_options()
run_cell.name = MAGIC
