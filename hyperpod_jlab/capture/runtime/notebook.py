"""Runs the plan: the cells in one namespace, as a notebook would, and in worker processes only what they need of them."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import inspect
import json
import os
import sys
import types
from typing import Any, Coroutine

from . import ending, failure, records, sources, stacks
from .compiling import Cell, Compiler
from .display import (
    display,
    draw_bars_as_text,
    draw_inline,
    offer_ipython,
    recorder,
    show,
    show_figures,
)
from .output import Capture, Timer
from .replay import Replay, used_names
from .service import Service
from .values import Reader, Writer

GRACE_S = 2.0
"""Seconds that tasks get to end after the last cell."""


class Notebook:
    """The plan, ready to run in a namespace."""

    def __init__(self, names: dict[str, Any], plan: dict[str, Any]) -> None:
        self.names = names
        self.plan = plan
        self.cells = [Cell(entry) for entry in plan["cells"]]
        self.locations = failure.SourceLocations({cell.path: cell.number for cell in self.cells})
        self.compiler = Compiler()
        self.index = sources.ClassIndex()

    def prepare(self) -> None:
        """Make the namespace and this process what a notebook's code expects."""
        for name in ("importlib", "os", "sys", "runner"):
            self.names.pop(name, None)
        self.names.update(display=display, __hyperpod__=Service())
        for cell in self.cells:
            sources.remember(cell.path, cell.source())
        sources.help_inspect(self.index)

    def install_main(self) -> None:
        """Offer what a notebook's code imports and a job has no use for."""
        if self.plan["ipython"]:
            offer_ipython()
        if self.plan["text_bars"]:
            draw_bars_as_text()

    def tree(self, cell: Cell) -> ast.Module:
        """A cell's syntax tree, known to `inspect` from now on."""
        tree = self.compiler.parse(cell)
        self.index.add(cell.path, tree)
        return tree


def start(names: dict[str, Any]) -> None:
    """Run the notebook in the namespace of ``main.py``, or give a worker what it needs of it."""
    with open(os.path.join(records.CODE, "cells.json"), encoding="utf-8") as file:
        notebook = Notebook(names, json.load(file))
    notebook.prepare()
    if names["__name__"] == "__main__":
        _run(notebook)
    else:
        Worker(notebook).start()


def _run(notebook: Notebook) -> None:
    stacks.answer()
    recorder.start()
    folder = notebook.plan["folder"]
    if folder not in ("", ".") and os.path.isdir(folder):
        os.chdir(folder)
    # As in a kernel the current folder is looked in first, wherever it is; and the first one stays known.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != records.CODE]
    sys.path[:0] = ["", os.getcwd()]
    notebook.install_main()
    draw_inline()
    writer = Writer(notebook.names)
    writer.install()
    try:
        coroutine = _run_cells(notebook, writer)
        if notebook.plan["event_loop"]:
            _in_loop(coroutine)
        else:
            _without_loop(coroutine)
    except BaseException as error:
        failure.release_frames(error, notebook.locations)
        raise
    finally:
        ending.settle()


async def _run_cells(notebook: Notebook, writer: Writer) -> None:
    for cell in notebook.cells:
        with contextlib.ExitStack() as stack:
            stack.enter_context(recorder.cell(cell.number, notebook.locations))
            tree = notebook.tree(cell)
            steps = notebook.compiler.steps(cell, tree)
            writer.add(cell.number, used_names(tree))
            names = notebook.names
            for around in cell.around:
                if around["magic"] == "capture":
                    stack.enter_context(Capture(notebook.names, around))
                elif around["magic"] == "time":
                    stack.enter_context(Timer())
                elif around["magic"] == "timeit":
                    names = dict(notebook.names)
                    stack.enter_context(Timer())
            for position, code in enumerate(steps):
                if code is None:
                    continue
                value = eval(code, names)  # noqa: S307 - the user's own code
                if code.co_flags & inspect.CO_COROUTINE:
                    value = await value
                if position == 1:
                    show(value)
            show_figures()
        if notebook.plan["event_loop"]:
            await asyncio.sleep(
                0
            )  # tasks that the cell started get their turn, as between a notebook's cells


def _without_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing, with no event loop around: cells may then call ``asyncio.run``."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a cell uses await, but the plan has no event loop")


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

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._replay = Replay(notebook.names, notebook.compiler)
        self._executed: set[int] = set()

    def start(self) -> None:
        """Run the definitions of the cells that ran so far."""
        self._notebook.install_main()
        # `multiprocessing` makes this module __main__ only later, and pickles name it by that.
        previous_main = sys.modules["__main__"]
        sys.modules["__main__"] = sys.modules[self._notebook.names["__name__"]]
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
        names = self._notebook.names
        previous_names = dict(names)
        self._execute_missing_cells()
        # `runpy` gave the module a copy of the namespace that its functions see.
        changed = {
            name: value for name, value in names.items() if previous_names.get(name) is not value
        }
        sys.modules["__main__"].__dict__.update(changed)

    def _execute_missing_cells(self) -> None:
        names, reader = self._notebook.names, Reader()
        for cell in self._notebook.cells:
            is_wanted = reader.cells is None or cell.number in reader.cells
            if is_wanted and cell.number not in self._executed:
                self._executed.add(cell.number)
                self._replay.cell(cell, self._notebook.tree(cell), reader.give)
        for name in reader.known_names():
            names[name] = reader.give(name, self._cell_of(name))

    def _cell_of(self, name: str) -> int:
        """Number of the last cell that mentions a name."""
        cell_numbers = [cell.number for cell in self._notebook.cells if name in cell.text()]
        return cell_numbers[-1] if cell_numbers else 0


def _is_fork_server() -> bool:
    """Whether this is the fork server itself, not a worker that it forked."""
    calls: set[str] = set()
    frame: types.FrameType | None = sys._getframe()  # noqa: SLF001 - nothing else tells
    while frame is not None:
        if frame.f_globals.get("__name__") == "multiprocessing.forkserver":
            calls.add(frame.f_code.co_name)
        frame = frame.f_back
    return "main" in calls and "_serve_one" not in calls
