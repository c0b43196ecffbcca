"""``%%hyperpod``: the command that submits the cell below it. Its options are those of ``hpj submit``."""

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

from hyperpod_jlab.capture.magic_lines import to_python
from hyperpod_jlab.capture.notebook import CodeCell, read_notebook, select_cells
from hyperpod_jlab.capture.notebook import Notebook as NotebookFile
from hyperpod_jlab.cli.following import end_text, raise_unless_succeeded, wait_for_end
from hyperpod_jlab.cli.invocation import Invocation, with_services
from hyperpod_jlab.cli.output import print_json
from hyperpod_jlab.cli.sending import SubmitMode, interruption_error, print_findings, print_preview, sending_options
from hyperpod_jlab.cli.spec_options import (
    ProgramCommand,
    add_spec_options,
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
from hyperpod_jlab.core.nested import merge
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import NotebookSource
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.logs.service import LogRequest
from hyperpod_jlab.magics.kernel import MAGIC, KernelCell
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request, Step, SubmitPreview

# --------------------------------------------------------------------------------------------------
# The names that a cell needs from earlier cells: read from its compiled code, so that scopes are
# Python's own.

_PREDEFINED_NAMES = {*dir(builtins), "display", "get_ipython"}
_RUN_CALL = "get_ipython().run_line_magic('run'"  # %run takes over the file's variables
_STORES = {"STORE_NAME", "STORE_GLOBAL"}
_LOADS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}


@dataclass(frozen=True)
class Names:
    """The names of one cell.

    Attributes:
        used_names: Names that must exist before it runs.
        used_later: Names that its functions and classes use.
        bound: Names that it defines.
        has_open_names: Whether it may define unknown names, through a star import or ``%run``.
    """

    used_names: frozenset[str] = frozenset()
    used_later: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    has_open_names: bool = False


def parse_names(text: str) -> Names:
    """The names of a cell's Python; empty when it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Names(has_open_names=True)
    used_names: set[str] = set()
    bound: set[str] = set()
    late_names: set[str] = set()
    for inner in _inner(code):
        loads, stores, global_names = _loads_and_stores(inner)
        late_names |= loads - stores
        bound |= global_names
    is_open = _RUN_CALL in text
    for step in dis.get_instructions(code):
        if step.opname in _STORES:
            bound.add(step.argval)
        elif step.opname in _LOADS and step.argval not in bound:
            used_names.add(step.argval)
        elif step.opname == "IMPORT_STAR" or step.argrepr == "INTRINSIC_IMPORT_STAR":
            is_open = True
    return Names(
        frozenset(filter(_is_own, used_names)), frozenset(filter(_is_own, late_names)), frozenset(bound), is_open
    )


def cell_names(cell: CodeCell) -> Names:
    """The names of a cell in a notebook."""
    return parse_names(to_python(cell.text)[0])


def find_missing_names(cells: Iterable[Names]) -> set[str]:
    """The names that cells, run in this order from an empty state, need and do not define."""
    undefined: set[str] = set()
    late_names: set[str] = set()
    bound: set[str] = set()
    for names in cells:
        if names.has_open_names:  # any name needed here or later may come from there
            return undefined
        undefined |= names.used_names - bound
        late_names |= names.used_later
        bound |= names.bound
    return undefined | (late_names - bound)


def _loads_and_stores(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """The names that a function's or class's own code loads from outside, keeps local, and makes global."""
    loads: set[str] = set()
    stores: set[str] = set()
    global_names: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in _LOADS:
            loads.add(step.argval)
        elif step.opname == "STORE_NAME":
            stores.add(step.argval)
        elif step.opname == "STORE_GLOBAL":
            global_names.add(step.argval)
    return loads, stores, global_names


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _is_own(name: str) -> bool:
    """Whether a name is a user's, not Python's; dunder names belong to the module."""
    dunder = name.startswith("__") and name.endswith("__")
    return not dunder and not name.startswith(".") and name not in _PREDEFINED_NAMES


# --------------------------------------------------------------------------------------------------
# The notebook that a cell is submitted as: the cell itself, at its position, and the cells to run
# before it.

_DEFAULT_FILE = "cell.ipynb"
_MAX_SHOWN = 8


@dataclass(frozen=True)
class CellSource:
    """A cell prepared for a submit as part of a notebook.

    Attributes:
        source: The source's data for the spec.
        content: The notebook's JSON, with the cell's executed text.
        findings: Findings about what the cell needs.
    """

    source: dict[str, Any]
    content: dict[str, Any]
    findings: tuple[Finding, ...]


def cell_source(cell: KernelCell, selection: Mapping[str, Any], *, rerun: bool = False) -> CellSource:
    """Put the cell at its position in the notebook or, without a file, among the kernel's inputs.

    Args:
        cell: The cell.
        selection: Which cells run before it: ``cells`` and ``tag`` as in a notebook source.
        rerun: Whether the same cell, run again, is the same source: then it keeps the position of
            its first run.

    Raises:
        InvalidInputError: The cell is empty, or the selection does not match.
    """
    if not "\n".join(cell.text.lstrip().split("\n")[1:]).strip():
        raise InvalidInputError(
            "there is no code below %%hyperpod",
            code="empty_cells",
            hint="write the code below that line; commands use one %: %hyperpod logs RUN",
        )
    notebook, index = _load_notebook(cell, rerun=rerun)
    own_cell = notebook.cells[index]
    chosen = _chosen(notebook, own_cell, selection)
    earlier_cells = [other_cell for other_cell in chosen if not _is_job(other_cell)]
    cell_numbers = [*(other_cell.number for other_cell in earlier_cells), own_cell.number]
    return CellSource(
        source={"kind": "notebook", "path": _display_path(notebook.path), "cells": ",".join(map(str, cell_numbers))},
        content=_content(notebook, cell_numbers),
        findings=(
            *_excluded_findings(chosen),
            *_unknown_texts(cell, earlier_cells),
            *_name_findings(cell, notebook, own_cell, earlier_cells),
        ),
    )


def _load_notebook(cell: KernelCell, *, rerun: bool) -> tuple[NotebookFile, int]:
    """The notebook with the cell's text, and the cell's position among its code cells."""
    if cell.notebook is not None:
        try:
            document = read_notebook(cell.notebook)
        except InvalidInputError:  # never saved with code, or being written right now
            document = NotebookFile(cell.notebook, (), frozenset())
        return _with_cell(document, cell)
    texts = [*cell.inputs[:-1], cell.text]
    if rerun:
        first = next(n for n, text in enumerate(texts, 1) if text.strip() == cell.text.strip())
        texts = [*texts[: first - 1], cell.text]
    cells = [CodeCell(number, text, frozenset(), None) for number, text in enumerate(texts, 1)]
    return NotebookFile(Path.cwd() / _DEFAULT_FILE, tuple(cells), frozenset()), len(cells) - 1


def _with_cell(notebook: NotebookFile, cell: KernelCell) -> tuple[NotebookFile, int]:
    cells: list[CodeCell] = list(notebook.cells)
    same_id_indices = [n for n, other_cell in enumerate(cells) if cell.id is not None and other_cell.id == cell.id]
    same_text_indices = [n for n, other_cell in enumerate(cells) if other_cell.text.strip() == cell.text.strip()]
    matching_indices = [*same_id_indices, *(same_text_indices if len(same_text_indices) == 1 else [])]
    index = matching_indices[0] if matching_indices else len(cells)
    template_cell = cells[index] if matching_indices else CodeCell(index + 1, "", frozenset(), None)
    cells[index : index + 1] = [replace(template_cell, text=cell.text, id=cell.id or template_cell.id)]
    return NotebookFile(notebook.path, tuple(cells), notebook.other_ids), index


def _chosen(notebook: NotebookFile, own_cell: CodeCell, selection: Mapping[str, Any]) -> tuple[CodeCell, ...]:
    if not selection:
        return ()
    source = parse(NotebookSource, {"kind": "notebook", "path": notebook.path.name, **selection})
    chosen = [other_cell for other_cell in select_cells(notebook, source) if other_cell.number != own_cell.number]
    later_numbers = [other_cell.number for other_cell in chosen if other_cell.number > own_cell.number]
    if later_numbers:
        raise InvalidInputError(
            f"cell {later_numbers[0]} is below this one, which is cell {own_cell.number}; cells run in the order of the notebook",
            code="cell_below",
            hint="choose cells above it, or move this cell down",
            detail={"field": "source.cells"},
        )
    return tuple(chosen)


def _is_job(cell: CodeCell) -> bool:
    return cell.text.lstrip().startswith(MAGIC)


def _excluded_findings(chosen: Sequence[CodeCell]) -> list[Finding]:
    """Cells that are jobs themselves: they define nothing in the kernel, so they are not included."""
    return [
        Finding(
            level="info",
            code="job_left_out",
            message=f"cell {other_cell.number} is a separate job and is not included",
            hint=None,
            field="source.cells",
        )
        for other_cell in chosen
        if _is_job(other_cell)
    ]


def _content(notebook: NotebookFile, cell_numbers: Sequence[int]) -> dict[str, Any]:
    """The notebook's JSON; cells that are not submitted keep their positions, and nothing else."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": other_cell.id,
            "source": other_cell.text if other_cell.number in cell_numbers else "",
            "metadata": {"tags": sorted(other_cell.tags)},
            "execution_count": None,
            "outputs": [],
        }
        for other_cell in notebook.cells
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def _display_path(path: Path) -> str:
    """The path as a user would type it in this folder."""
    cwd = Path.cwd()
    return str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)


def _unknown_texts(cell: KernelCell, earlier_cells: Sequence[CodeCell]) -> list[Finding]:
    """Cells that were not run with this text in this kernel: the file may be older than the screen."""
    executed_texts = {text.strip() for text in cell.inputs}
    return [
        Finding(
            level="warning",
            code="cell_not_run",
            message=f"cell {other_cell.number} is included as saved, but this kernel did not run that version",
            hint="save the notebook if it has unsaved changes",
            field="source.cells",
        )
        for other_cell in earlier_cells
        if other_cell.text.strip() and other_cell.text.strip() not in executed_texts
    ]


def _name_findings(
    cell: KernelCell, notebook: NotebookFile, own_cell: CodeCell, earlier_cells: Sequence[CodeCell]
) -> list[Finding]:
    """A warning about names that the kernel has and the job will not have."""
    undefined = find_missing_names(cell_names(other_cell) for other_cell in (*earlier_cells, own_cell)) & cell.names
    if not undefined:
        return []
    missing_sorted = sorted(undefined)
    program = ", ".join(missing_sorted[:_MAX_SHOWN]) + (", ..." if len(missing_sorted) > _MAX_SHOWN else "")
    needed_cells = _find_defining_cells(undefined, notebook, own_cell)
    hint = "define them in the cell: a job starts with an empty namespace"
    if needed_cells:
        cell_numbers = sorted({*needed_cells, *(other_cell.number for other_cell in earlier_cells)})
        hint = f"include the cells that define them: --cells {','.join(map(str, cell_numbers))}"
    return [
        Finding(
            level="warning",
            code="kernel_names",
            message=f"the cell uses names of this kernel that do not exist in the job: {program}",
            hint=hint,
            field="source",
        )
    ]


def _find_defining_cells(undefined: set[str], notebook: NotebookFile, own_cell: CodeCell) -> list[int]:
    """Numbers of the cells above that together define the names; empty when a name has no defining cell."""
    earlier_names: dict[int, Names] = {
        other_cell.number: cell_names(other_cell)
        for other_cell in notebook.cells
        if other_cell.number < own_cell.number and not _is_job(other_cell)
    }
    needed_cells: set[int] = set()
    pending = set(undefined)
    while pending:
        name = pending.pop()
        makers = [number for number, names in earlier_names.items() if name in names.bound]
        if not makers:
            if name in undefined:
                return []
            continue
        if makers[-1] not in needed_cells:
            needed_cells.add(makers[-1])
            pending |= earlier_names[makers[-1]].used_names | earlier_names[makers[-1]].used_later
    return sorted(needed_cells)


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

_OPTION_HELP = {
    "wait": "Wait until the run ends; raise an error unless it succeeds. Interrupting the kernel ends the waiting, not the run.",
    "cells": "Cells to run before this one, such as 2-5,7, counted from 1 (without a notebook file: In [1], In [2], ...).",
    "tag": "Run the code cells with this tag before this one.",
}


@dataclass
class CellInvocation(Invocation):
    """One call of ``%%hyperpod``.

    Attributes:
        cell: The cell.
        announce: Shows the submitted run, and assigns it to the name if one is given.
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
    """Submit the cell."""
    call = click.get_current_context().find_object(CellInvocation)
    if call is None or call.cell is None or call.announce is None:
        raise RuntimeError("there is no cell")
    if target is not None and (not target.isidentifier() or keyword.iskeyword(target)):
        raise InvalidInputError(
            f"-o: '{target[:60]}' is not a Python name", code="usage", detail={"option": "--run", "field": "target"}
        )
    base = current_folder()
    accept_cost = options.pop("accept_cost")
    file_data = read_spec_file(spec) if spec is not None else {}
    override_data, given_names = options_to_data(options)
    source = cell_source(call.cell, override_data.pop("source", {}), rerun=run_id is not None)
    data = {**merge(file_data, override_data), "source": source.source}
    program = program_arguments()
    if program is not None:
        data["args"] = program
    request = Request(
        parse_spec(data, given_names, None if spec is None else str(spec)),
        cluster=cluster,
        run_id=run_id if run_id is not None else new_run_id(),
        base=base,
        accept_cost=accept_cost,
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
    _follow_to_end(sent, SubmitMode(wait=wait, follow=follow), call, target)


def _secrets(request: Request) -> dict[str, str]:
    secrets = request.spec.environment.secrets
    return read_local_secrets([name for name, is_known in secrets.items() if not is_known], None)


async def _submit(hyperpod: Hyperpod, request: Request, source: CellSource, call: CellInvocation) -> str:
    steps: list[Step] = []
    call.on_interrupt = lambda: interruption_error(hyperpod, request, steps)

    def show_preview(preview: SubmitPreview) -> None:
        findings: list[Finding] = [*preview.findings, *source.findings]
        print_findings([finding for finding in findings if finding.level == "warning"])

    return await hyperpod.submitter.submit(request, steps.append, show_preview)


def _follow_to_end(run_id: str, submit_mode: SubmitMode, call: CellInvocation, target: str | None) -> None:
    """Show the run, and apply the other options to it.

    Raises:
        RunEndedError: The run was awaited and did not succeed.
    """
    if call.announce is not None:
        call.announce(run_id, target)
    if submit_mode.wait or submit_mode.follow:
        request = LogRequest(run_id, follow=True)
        run = with_services(lambda hyperpod: wait_for_end(hyperpod, request, with_log=submit_mode.follow))
        if call.as_json:
            print_json(run)
        raise_unless_succeeded(run)
        if not call.as_json:
            click.echo(printable(end_text(run)))
    elif call.as_json:
        print_json(with_services(lambda hyperpod: hyperpod.runs.get(run_id)))


def _add_options() -> None:
    """The spec's options; options that select cells mean the cells to include."""
    add_spec_options()(run_cell)
    for parameter in run_cell.params:
        if isinstance(parameter, click.Option) and parameter.name in _OPTION_HELP:
            parameter.help = _OPTION_HELP[parameter.name]


_add_options()
run_cell.name = MAGIC
