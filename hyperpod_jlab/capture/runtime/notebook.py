"""Runs the plan: the cells in one namespace, as a notebook would, and in worker processes only what they need of them."""

from __future__ import annotations

import ast
import asyncio
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import types
from typing import TYPE_CHECKING, Any, Coroutine

from . import ending, failure, records, sources, stacks
from .cell_text import strip_leading
from .cells import Cell
from .recorder import recorder
from .replay import Replay
from .unpacking import unpacked
from .values import Reader, Writer

if TYPE_CHECKING:
    from .shell import Shell

GRACE_S = 2.0
"""Seconds that tasks get to end after the last cell."""
_LIBRARY = os.path.join(records.CODE, "lib", "ipython.zip")
_INLINE = "module://matplotlib_inline.backend_inline"
_LOOP_NAMES = {"create_task", "ensure_future", "get_running_loop", "nest_asyncio"}
_NOTEBOOK_BARS = re.compile(r"\btqdm\.notebook\b|\btqdm import .*notebook|\btqdm_notebook\b|\btnrange\b")


def start(names: dict[str, Any]) -> None:
    """Run the notebook in the namespace of ``main.py``, or give a worker what it needs of it."""
    for name in ("importlib", "os", "sys", "runner"):
        names.pop(name, None)
    if names["__name__"] == "__main__":
        _run(names)
    else:
        Worker(names).start()


def _run(names: dict[str, Any]) -> None:
    with open(os.path.join(records.CODE, "cells.json"), encoding="utf-8") as file:
        plan = json.load(file)
    cells = [Cell(entry) for entry in plan["cells"]]
    for cell in cells:
        sources.remember(cell.path, cell.text)
    locations = failure.SourceLocations({cell.path: cell.number for cell in cells})
    stacks.answer()
    recorder.start()
    if plan["folder"] not in ("", ".") and os.path.isdir(plan["folder"]):
        os.chdir(plan["folder"])
    # As in a kernel the current folder is looked in first, wherever it is; and the first one stays known.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != records.CODE]
    sys.path[:0] = ["", os.getcwd()]
    # The programs of the job's own Python come first in shell lines.
    own_folder = os.path.dirname(os.path.abspath(sys.executable))
    os.environ["PATH"] = os.pathsep.join([own_folder, os.environ.get("PATH", os.defpath)])
    writer = Writer(names)
    writer.install()
    shell = _make_shell(writer)
    if any(_NOTEBOOK_BARS.search(cell.text) for cell in cells):
        _draw_bars_as_text()
    try:
        if shell is None:
            plain = Plain(names, writer)
            _without_loop(_run_cells(plain, cells, locations, in_loop=False))
        elif any(_needs_loop(shell, cell) for cell in cells):
            _in_loop(_run_cells(shell, cells, locations, in_loop=True))
        else:
            _without_loop(_run_cells(shell, cells, locations, in_loop=False))
    except BaseException as error:
        failure.release_frames(error, locations)
        raise
    finally:
        ending.settle()


def _make_shell(writer: Writer) -> Shell | None:
    """The node's own IPython, else the one that came with the run; None if this Python is too old for it."""
    try:
        module = _import_shell(None) or _import_shell(unpacked(_LIBRARY))
    except Exception as error:  # noqa: BLE001 - an IPython for another Python fails in many ways
        if records.rank() == 0:
            version = "{}.{}".format(*sys.version_info[:2])
            note = (
                f"Python {version} has no IPython, and cannot use the one that came with the run "
                f"({type(error).__name__}: {error}): cells run as plain Python, without magics, "
                "shell lines and figures"
            )
            print(f"hyperpod: {note}", file=sys.stderr)
        return None
    sys.meta_path.insert(0, _InlineFigures())
    if importlib.util.find_spec("nbformat") is not None:  # plotly needs it to show in a notebook
        os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype+notebook")
    shell: Shell = module.make_shell(sys.modules["__main__"], writer.add)
    return shell


def _import_shell(folder: str | None) -> Any:
    """The module with the shell, with the packages of a folder if one is given; None if the node has no usable IPython."""
    sys.path[:0] = [folder] if folder else []
    try:
        module = importlib.import_module(f"{__package__}.shell")
    except Exception:  # an IPython for another Python fails in many ways
        if folder:
            sys.path.remove(folder)
            raise
        for name in [one for one in sys.modules if one.partition(".")[0] == "IPython"]:
            del sys.modules[name]
        return None
    if folder:  # behind the node's own packages
        sys.path.remove(folder)
        sys.path.append(folder)
    return module


class _InlineFigures(importlib.abc.MetaPathFinder):
    """Lets matplotlib draw for the notebook once it is imported; a variable would do so in child processes, too."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """The module as the other finders find it."""
        if name != "matplotlib" or "MPLBACKEND" in os.environ:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                module.rcParams["backend"] = _INLINE

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 - to mypy it is a method
        return spec


def _draw_bars_as_text() -> None:
    """Let ``tqdm.notebook`` draw its bars as text: the widgets that it makes need a notebook."""
    if importlib.util.find_spec("tqdm") is None:
        return
    tqdm = importlib.import_module("tqdm")
    bars = types.ModuleType("tqdm.notebook", "Draws text: a job has no notebook to draw in.")
    bars.__dict__.update(tnrange=tqdm.trange, tqdm=tqdm.tqdm, tqdm_notebook=tqdm.tqdm, trange=tqdm.trange)
    sys.modules["tqdm.notebook"] = bars
    setattr(tqdm, "notebook", bars)  # noqa: B010 - to mypy a module takes no new names


def _needs_loop(shell: Shell, cell: Cell) -> bool:
    """Whether a cell awaits, or uses outside of any coroutine what needs a running loop."""
    text = shell.transform_cell(cell.text)
    if shell.should_run_async(cell.text, transformed_cell=text):
        return True
    try:
        pending: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError):
        return False
    while pending:
        node = pending.pop()
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        if name in _LOOP_NAMES:
            return True
        if not isinstance(node, ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))
    return False


class Plain:
    """Runs cells as plain Python, where there is no IPython."""

    def __init__(self, names: dict[str, Any], writer: Writer) -> None:
        self._names = names
        self._writer = writer

    def run(self, cell: Cell) -> None:
        """Run a cell, and print the value of its last expression."""
        stripped, lines_before = strip_leading(cell.text)
        text = "\n" * lines_before + stripped
        flags = ast.PyCF_ONLY_AST
        tree: ast.Module = compile(text, cell.path, "exec", flags, dont_inherit=True)
        self._writer.add(cell, text, tree)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell.path, "exec", dont_inherit=True), self._names)  # noqa: S102 - the user's own code
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), cell.path, "eval", dont_inherit=True)
            value = eval(code, self._names)  # noqa: S307 - the user's own code
            if value is not None:
                recorder.output("execute_result", {"text/plain": repr(value)}, {}, quiet=records.rank() != 0)


async def _run_cells(shell: Any, cells: list[Cell], locations: failure.SourceLocations, *, in_loop: bool) -> None:
    for cell in cells:
        with recorder.cell(cell.number, locations):
            if in_loop:
                await shell.run_in_loop(cell)
            else:
                shell.run(cell)
        if in_loop:
            # Tasks that the cell started get their turn, as between a notebook's cells.
            await asyncio.sleep(0)


def _without_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing, with no event loop around: cells may then call ``asyncio.run``."""
    try:
        coroutine.send(None)
    except StopIteration:
        return


def _in_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run all cells in one event loop, so that tasks live on from cell to cell."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(coroutine)
    finally:
        try:
            _end_tasks(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        # A task that does not let itself be ended must not keep the job from ending.
        loop.run_until_complete(asyncio.wait(pending, timeout=GRACE_S))
    loop.run_until_complete(loop.shutdown_asyncgens())


class Worker:
    """A process that `multiprocessing` started by spawn or forkserver."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._replay = Replay(names)
        self._executed = 0

    def start(self) -> None:
        """Run the definitions of the cells that ran so far."""
        # `multiprocessing` makes this module __main__ only later, and pickles name it by that.
        previous_main = sys.modules["__main__"]
        sys.modules["__main__"] = sys.modules[self._names["__name__"]]
        try:
            self._execute_missing_cells()
        finally:
            sys.modules["__main__"] = previous_main
        if _is_fork_server():
            # It imports this once, and workers are forked off it later: they need what has come since.
            os.register_at_fork(after_in_child=functools.partial(self._after_fork, os.getpid()))

    def _after_fork(self, server: int) -> None:
        if os.getppid() != server:
            return
        previous_names = dict(self._names)
        self._execute_missing_cells()
        # `runpy` gave the module a copy of the namespace that its functions see.
        changed = {name: value for name, value in self._names.items() if previous_names.get(name) is not value}
        sys.modules["__main__"].__dict__.update(changed)

    def _execute_missing_cells(self) -> None:
        reader = Reader()
        for number, path, text in reader.cells[self._executed :]:
            self._replay.cell(number, path, text, reader.give)
        self._executed = len(reader.cells)
        for name in reader.known_names():
            last = [number for number, _, text in reader.cells if name in text]
            self._names[name] = reader.give(name, last[-1] if last else 0)


def _is_fork_server() -> bool:
    """Whether this is the fork server itself, not a worker that it forked."""
    calls: set[str] = set()
    frame: types.FrameType | None = sys._getframe()  # noqa: SLF001 - nothing else tells
    while frame is not None:
        if frame.f_globals.get("__name__") == "multiprocessing.forkserver":
            calls.add(frame.f_code.co_name)
        frame = frame.f_back
    return "main" in calls and "_serve_one" not in calls
