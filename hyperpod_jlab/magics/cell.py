"""``%%hyperpod``: the command that sends the cell below it. Its options are those of ``hpj submit``."""

from __future__ import annotations

import ast
import builtins
import dis
import keyword
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

import click

from hyperpod_jlab.capture.magics import SERVICE
from hyperpod_jlab.capture.notebook import CodeCell, read_notebook, select_cells
from hyperpod_jlab.capture.notebook import Notebook as NotebookFile
from hyperpod_jlab.capture.transform import transform_cell
from hyperpod_jlab.cli.following import end_text, raise_unless_succeeded, wait_for_end
from hyperpod_jlab.cli.invocation import Invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.sending import (
    SubmitMode,
    interruption_error,
    print_findings,
    print_preview,
    sending_options,
)
from hyperpod_jlab.cli.spec_options import (
    ProgramCommand,
    add_spec_options,
    merge,
    options_to_data,
    parse_spec,
    program_arguments,
    read_local_secrets,
    read_spec_file,
)
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.clusters.configuration import current_folder
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import NotebookSource
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.logs.service import LogRequest
from hyperpod_jlab.magics.kernel import MAGIC, KernelCell
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request, Step, SubmitPreview

# --------------------------------------------------------------------------------------------------
# Which names a cell takes from what ran before it: read from its compiled code, so that scopes are Python's own.

_IN_EVERY_JOB = {*dir(builtins), SERVICE, "display", "get_ipython"}
_TAKES_ALL = f"{SERVICE}.run("  # %run takes the file's variables over
_STORES = {"STORE_NAME", "STORE_GLOBAL"}
_LOADS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}


@dataclass(frozen=True)
class Names:
    """The names of one cell.

    Attributes:
        wanted: Those that must be there before it runs.
        wanted_later: Those that its functions and classes use.
        bound: Those that it makes.
        open: Whether it may make others that cannot be seen: by a star import or ``%run``.
    """

    wanted: frozenset[str] = frozenset()
    wanted_later: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    open: bool = False


def names_of(text: str) -> Names:
    """The names of a cell whose magics were replaced; none when it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(
                text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Names(open=True)
    wanted: set[str] = set()
    bound: set[str] = set()
    later: set[str] = set()
    for inner in _inner(code):
        loads, stores, shared = _loads_and_stores(inner)
        later |= loads - stores
        bound |= shared
    is_open = _TAKES_ALL in text
    for step in dis.get_instructions(code):
        if step.opname in _STORES:
            bound.add(step.argval)
        elif step.opname in _LOADS and step.argval not in bound:
            wanted.add(step.argval)
        elif step.opname == "IMPORT_STAR" or step.argrepr == "INTRINSIC_IMPORT_STAR":
            is_open = True
    return Names(
        frozenset(filter(_is_own, wanted)),
        frozenset(filter(_is_own, later)),
        frozenset(bound),
        is_open,
    )


def names_in(cell: CodeCell) -> Names:
    """The names of a cell as it stands in a notebook."""
    return names_of(transform_cell(cell, "cell").text)


def missing_names(cells: Iterable[Names]) -> set[str]:
    """The names that cells, run in this order from nothing, need and do not make."""
    missing: set[str] = set()
    later: set[str] = set()
    bound: set[str] = set()
    for names in cells:
        if names.open:  # whatever is wanted here and later may be from there
            return missing
        missing |= names.wanted - bound
        later |= names.wanted_later
        bound |= names.bound
    return missing | (later - bound)


def _loads_and_stores(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """What a function's or class's own code loads from outside, keeps to itself, and makes global."""
    loads: set[str] = set()
    stores: set[str] = set()
    shared: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in _LOADS:
            loads.add(step.argval)
        elif step.opname == "STORE_NAME":
            stores.add(step.argval)
        elif step.opname == "STORE_GLOBAL":
            shared.add(step.argval)
    return loads, stores, shared


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _is_own(name: str) -> bool:
    """Whether a name is somebody's, not Python's; dunder names are the module's."""
    dunder = name.startswith("__") and name.endswith("__")
    return not dunder and not name.startswith(".") and name not in _IN_EVERY_JOB


# --------------------------------------------------------------------------------------------------
# The notebook that a cell is sent as: the cell itself, at its place, and the cells that are to run before it.

_NO_FILE = "cell.ipynb"
_SHOWN = 8


@dataclass(frozen=True)
class CellSource:
    """A cell made ready to be sent as part of a notebook.

    Attributes:
        source: The source's data for the spec.
        content: The notebook's JSON, with the cell's text as it was run.
        findings: What there is to say about what the cell needs.
    """

    source: dict[str, Any]
    content: dict[str, Any]
    findings: tuple[Finding, ...]


def cell_source(
    cell: KernelCell, selection: Mapping[str, Any], *, again: bool = False
) -> CellSource:
    """Put the cell where it stands in its notebook; without a file, where it stands among the kernel's inputs.

    Args:
        cell: The cell.
        selection: Which cells run before it: ``cells`` and ``tag`` as in a notebook source.
        again: Whether the same cell run once more is to be the same source: then it stands where it was first run.

    Raises:
        InvalidInputError: The cell is empty, or the selection does not fit.
    """
    if not "\n".join(cell.text.lstrip().split("\n")[1:]).strip():
        raise InvalidInputError(
            "there is no code below %%hyperpod",
            code="empty_cells",
            hint="write the code below that line; commands use one %: %hyperpod logs RUN",
        )
    notebook, place = _notebook_of(cell, again=again)
    own = notebook.cells[place]
    chosen = _chosen(notebook, own, selection)
    before = [one for one in chosen if not _is_job(one)]
    numbers = [*(one.number for one in before), own.number]
    return CellSource(
        source={
            "kind": "notebook",
            "path": _as_typed(notebook.path),
            "cells": ",".join(map(str, numbers)),
        },
        content=_content(notebook, numbers),
        findings=(
            *_left_out(chosen),
            *_unknown_texts(cell, before),
            *_name_findings(cell, notebook, own, before),
        ),
    )


def _notebook_of(cell: KernelCell, *, again: bool) -> tuple[NotebookFile, int]:
    """The notebook with the cell's text in it, and the cell's place among its code cells."""
    if cell.notebook is not None:
        try:
            found = read_notebook(cell.notebook)
        except InvalidInputError:  # never saved with code in it, or being written just now
            found = NotebookFile(cell.notebook, (), frozenset())
        return _with_cell(found, cell)
    texts = [*cell.inputs[:-1], cell.text]
    if again:
        first = next(n for n, text in enumerate(texts, 1) if text.strip() == cell.text.strip())
        texts = [*texts[: first - 1], cell.text]
    cells = [CodeCell(number, text, frozenset(), None) for number, text in enumerate(texts, 1)]
    return NotebookFile(Path.cwd() / _NO_FILE, tuple(cells), frozenset()), len(cells) - 1


def _with_cell(notebook: NotebookFile, cell: KernelCell) -> tuple[NotebookFile, int]:
    cells: list[CodeCell] = list(notebook.cells)
    same_id = [n for n, one in enumerate(cells) if cell.id is not None and one.id == cell.id]
    same_text = [n for n, one in enumerate(cells) if one.text.strip() == cell.text.strip()]
    found = [*same_id, *(same_text if len(same_text) == 1 else [])]
    place = found[0] if found else len(cells)
    before = cells[place] if found else CodeCell(place + 1, "", frozenset(), None)
    cells[place : place + 1] = [replace(before, text=cell.text, id=cell.id or before.id)]
    return NotebookFile(notebook.path, tuple(cells), notebook.other_ids), place


def _chosen(
    notebook: NotebookFile, own: CodeCell, selection: Mapping[str, Any]
) -> tuple[CodeCell, ...]:
    if not selection:
        return ()
    source = parse(NotebookSource, {"kind": "notebook", "path": notebook.path.name, **selection})
    chosen = [one for one in select_cells(notebook, source) if one.number != own.number]
    below = [one.number for one in chosen if one.number > own.number]
    if below:
        raise InvalidInputError(
            f"cell {below[0]} is below this one, which is cell {own.number}; cells run in the order of the notebook",
            code="cell_below",
            hint="choose cells above it, or move this cell down",
            detail={"field": "source.cells"},
        )
    return tuple(chosen)


def _is_job(cell: CodeCell) -> bool:
    return cell.text.lstrip().startswith(MAGIC)


def _left_out(chosen: Sequence[CodeCell]) -> list[Finding]:
    """Cells that are jobs of their own: in the kernel they made nothing, so they don't go along."""
    return [
        Finding(
            level="info",
            code="job_left_out",
            message=f"cell {one.number} is a separate job and is not included",
            hint=None,
            field="source.cells",
        )
        for one in chosen
        if _is_job(one)
    ]


def _content(notebook: NotebookFile, numbers: Sequence[int]) -> dict[str, Any]:
    """The notebook's JSON; cells that are not sent keep their places, and nothing else."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": one.id,
            "source": one.text if one.number in numbers else "",
            "metadata": {"tags": sorted(one.tags)},
            "execution_count": None,
            "outputs": [],
        }
        for one in notebook.cells
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def _as_typed(path: Path) -> str:
    """The path as one would type it in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _unknown_texts(cell: KernelCell, before: Sequence[CodeCell]) -> list[Finding]:
    """Cells that were not run like that in this kernel: the file may be older than what is on the screen."""
    ran = {text.strip() for text in cell.inputs}
    return [
        Finding(
            level="warning",
            code="cell_not_run",
            message=f"cell {one.number} is included as saved, but this kernel did not run that version",
            hint="save the notebook if it has unsaved changes",
            field="source.cells",
        )
        for one in before
        if one.text.strip() and one.text.strip() not in ran
    ]


def _name_findings(
    cell: KernelCell, notebook: NotebookFile, own: CodeCell, before: Sequence[CodeCell]
) -> list[Finding]:
    """A warning on names that the kernel has and the job will not have."""
    missing = missing_names(names_in(one) for one in (*before, own)) & cell.names
    if not missing:
        return []
    shown = sorted(missing)
    words = ", ".join(shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "")
    needed = _cells_that_define(missing, notebook, own)
    hint = "define them in the cell: a job starts with an empty namespace"
    if needed:
        numbers = sorted({*needed, *(one.number for one in before)})
        hint = f"include the cells that define them: --cells {','.join(map(str, numbers))}"
    return [
        Finding(
            level="warning",
            code="kernel_names",
            message=f"the cell uses names of this kernel that do not exist in the job: {words}",
            hint=hint,
            field="source",
        )
    ]


def _cells_that_define(missing: set[str], notebook: NotebookFile, own: CodeCell) -> list[int]:
    """Numbers of the cells above that together make the names; empty when some name is made by none."""
    above: dict[int, Names] = {
        one.number: names_in(one)
        for one in notebook.cells
        if one.number < own.number and not _is_job(one)
    }
    needed: set[int] = set()
    pending = set(missing)
    while pending:
        name = pending.pop()
        makers = [number for number, names in above.items() if name in names.bound]
        if not makers:
            if name in missing:
                return []
            continue
        if makers[-1] not in needed:
            needed.add(makers[-1])
            pending |= above[makers[-1]].wanted | above[makers[-1]].wanted_later
    return sorted(needed)


_HELP = """\
Submit the lines below to a cluster as a run, and return at once. The output of the cell is the run.

The run starts with an empty namespace: variables of earlier cells do not exist there, unless --cells or --tag include those cells. The files
of the notebook's folder are included, as with hpj submit. Arguments after -- are in sys.argv.
"""

_EXAMPLES = (
    "%%hyperpod --nodes 2 --processes-per-node 2",
    "%%hyperpod --cells 1-3 --time-limit 2h -o run",
    "%%hyperpod --cluster ml-slurm --gpus-per-node 8 --wait -- --lr 0.1",
    "%%hyperpod --nodes 4 --dry-run",
)

_OWN_HELP = {
    "wait": "Wait until the run ends; raise an error unless it succeeds. Interrupting the kernel ends the waiting, not the run.",
    "cells": "Cells to run before this one, such as 2-5,7, counted from 1 (without a notebook file: In [1], In [2], ...).",
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
    help="Assign the run to this variable: NAME.logs(), NAME.wait(), NAME.cancel().",
)
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the spec, except its source, from a JSON or TOML file. Options override it.",
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
            f"-o: '{target[:60]}' is not a Python name",
            code="usage",
            detail={"option": "--run", "field": "target"},
        )
    base = current_folder()
    under = read_spec_file(spec) if spec is not None else {}
    over, given = options_to_data(options)
    source = cell_source(call.cell, over.pop("source", {}), again=run_id is not None)
    data = {**merge(under, over), "source": source.source}
    words = program_arguments()
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
    _see_through(sent, SubmitMode(wait=wait, follow=follow), call, target)


def _secrets(request: Request) -> dict[str, str]:
    secrets = request.spec.environment.secrets
    return read_local_secrets([name for name, known in secrets.items() if not known], None)


async def _submit(
    hyperpod: Hyperpod, request: Request, source: CellSource, call: CellInvocation
) -> str:
    done: list[Step] = []
    call.on_interrupt = lambda: interruption_error(hyperpod, request, done)

    def tell(preview: SubmitPreview) -> None:
        found: list[Finding] = [*preview.findings, *source.findings]
        print_findings([finding for finding in found if finding.level == "warning"])

    return await hyperpod.submitter.submit(request, done.append, tell)


def _see_through(run_id: str, ways: SubmitMode, call: CellInvocation, target: str | None) -> None:
    """Show the run, and do with it what else was asked for.

    Raises:
        RunEndedError: It was waited for and did not succeed.
    """
    if call.announce is not None:
        call.announce(run_id, target)
    if ways.wait or ways.follow:
        request = LogRequest(run_id, follow=True)
        run = with_services(lambda hyperpod: wait_for_end(hyperpod, request, with_log=ways.follow))
        if call.as_json:
            print_json(run)
        raise_unless_succeeded(run)
        if not call.as_json:
            click.echo(printable(end_text(run)))
    elif call.as_json:
        print_json(with_services(lambda hyperpod: hyperpod.runs.get(run_id)))


def _add_options() -> None:
    """The spec's options; those that choose cells mean here the ones that go along."""
    add_spec_options()(run_cell)
    for parameter in run_cell.params:
        if isinstance(parameter, click.Option) and parameter.name in _OWN_HELP:
            parameter.help = _OWN_HELP[parameter.name]


_add_options()
run_cell.name = MAGIC
