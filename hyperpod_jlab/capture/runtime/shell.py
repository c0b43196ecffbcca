"""The IPython that runs the cells. It differs from a kernel where many ranks run a cell, and where a kernel would wait for input."""

from __future__ import annotations

import ast
import atexit
import codeop
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import traceback
import types
from typing import Any, Callable, Iterator

import IPython
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import SList
from traitlets.config import Config

from . import cell_text, commands, failure, records
from .cells import Cell
from .once import once
from .recorder import recorder

if IPython.version_info < (8,):
    raise ImportError(f"IPython {IPython.__version__} is too old")

failure.hide(os.path.dirname(IPython.__file__) + os.sep, codeop.__file__)

Parsed = Callable[[Cell, str, ast.Module], None]
_TIMEIT_OPTIONS = re.compile(r"\s*(?:-[a-z]\s*\d*(?:\s+|$))*")
_SETTERS = ("env", "set_env")
"""They print the value, which may be a secret."""


def _timed_alike(line: str) -> str:
    """``%timeit``'s line with numbers of loops: it would choose others on each rank, and collectives would hang."""
    options = _TIMEIT_OPTIONS.match(line)
    given = options[0] if options is not None else ""
    return "".join(f"{option} 1 " for option in ("-n", "-r") if option not in given) + line


class Compiler(CachingCompiler):
    """Compiles what a cell consists of under the file of the cell, with the cell's own line numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.cell: Cell | None = None
        self.lines_before = 0
        self.on_parsed: Parsed | None = None

    @contextlib.contextmanager
    def lines(self, before: int) -> Iterator[None]:
        """What is compiled inside has so many lines of the cell before it."""
        previous, self.lines_before = self.lines_before, max(0, before)
        try:
            yield
        finally:
            self.lines_before = previous

    def cache(self, transformed_code: str, number: int = 0, raw_code: str | None = None) -> str:
        """The file name of some code."""
        if self.cell is not None:
            return self.cell.path
        return super().cache(transformed_code, number, raw_code)

    def ast_parse(self, source: str, filename: str = "<unknown>", symbol: str = "exec") -> ast.AST:
        """The syntax tree of a cell, or of the lines below a magic."""
        if self.cell is None:
            return super().ast_parse(source, filename, symbol)
        text = "\n" * self.lines_before + source
        tree = super().ast_parse(text, self.cell.path, symbol)
        if isinstance(tree, ast.Module) and self.on_parsed is not None:
            self.on_parsed(self.cell, text, tree)
            shown = cell_text.split_lines(self.cell.text)
            _forget_columns(tree, cell_text.split_lines(text), shown)
        return tree

    def __call__(self, source: Any, filename: str, symbol: str, **options: Any) -> Any:
        """Code of a syntax tree."""
        if self.cell is not None and filename.startswith("<timed "):
            filename = self.cell.path
        return super().__call__(source, filename, symbol, **options)


def _forget_columns(tree: ast.AST, parsed: list[str], shown: list[str]) -> None:
    """On lines that IPython has rewritten columns mean nothing to the reader: mark whole lines, which tracebacks leave unmarked."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.stmt, ast.expr)) or node.lineno > len(shown):
            continue
        line = shown[node.lineno - 1]
        if parsed[node.lineno - 1] != line:
            node.col_offset = len(line) - len(line.lstrip())
            node.end_lineno = node.lineno
            node.end_col_offset = len(line.rstrip().encode("utf-8"))


class Publisher(DisplayPublisher):
    """Records what cells display."""

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: object = None,
        *,
        transient: Any = None,
        update: bool = False,
        **_: object,
    ) -> None:
        """Show a value whose forms are given by MIME type."""
        del source
        identity = (transient or {}).get("display_id")
        more = {"display_id": identity} if identity else {}
        kind = "update" if update else "display_data"
        recorder.output(kind, dict(data), dict(metadata or {}), quiet=update, **more)

    def clear_output(self, wait: bool = False) -> None:
        """Remove what the cell has shown; the log keeps it."""
        recorder.clear(bool(wait))


class Hook(DisplayHook):
    """Records the value of a cell's last expression. The log has it once for the whole job, from rank 0."""

    def write_output_prompt(self) -> None:
        """Write no prompt."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Show a value whose forms are given by MIME type."""
        is_quiet = records.rank() != 0
        recorder.output("execute_result", dict(format_dict), dict(md_dict or {}), quiet=is_quiet)

    def log_output(self, format_dict: Any) -> None:
        """Keep no copy: the record has it."""


class Shell(InteractiveShell):
    """IPython for one rank. Errors of cells end the run, so they are raised, not shown."""

    compiler_class = Compiler
    displayhook_class = Hook
    display_pub_class = Publisher
    kernel = object()
    """Libraries such as pandas look for it, and show values as in a notebook."""
    compile: Compiler

    def __init__(self, **options: Any) -> None:
        self.error: BaseException | None = None
        self._counts: dict[object, int] = {}
        self._written: dict[str, bytes] = {}
        super().__init__(**options)
        for installer in ("pip", "uv"):
            self.magics_manager.register_function(self._installer(installer), "line", installer)
        for name in ("writefile", "file"):
            self.magics_manager.register_function(self._write_file, "cell", name)
        self.set_hook("show_in_pager", lambda *_, **__: None, 99)  # help has no reader
        for names in (self.user_ns, self.user_ns_hidden):
            names.update(exit=sys.exit, quit=sys.exit)
        self.run_line_magic("load_ext", "storemagic")  # as a kernel does

    def init_virtualenv(self) -> None:
        """Leave ``sys.path`` alone: ``python`` chooses the environment."""

    def enable_gui(self, gui: str | None = None) -> None:
        """Start no loop of a window system: figures are outputs."""

    def place(self) -> tuple[str, int]:
        """File name and line in the cell that runs."""
        frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to the caller
        path = self.compile.cell.path if self.compile.cell else ""
        while frame is not None and frame.f_code.co_filename != path:
            frame = frame.f_back
        return os.path.basename(path), frame.f_lineno if frame is not None else 1

    def count(self, subject: object) -> int:
        """How often something has come here, this time included."""
        self._counts[subject] = self._counts.get(subject, 0) + 1
        return self._counts[subject]

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """``%name line``."""
        if magic_name == "timeit" and records.number("WORLD_SIZE", 1) > 1:
            line = _timed_alike(line)
        output = contextlib.nullcontext() if magic_name not in _SETTERS else _unprinted()
        with self.compile.lines(self.place()[1] - 1), output:
            return super().run_line_magic(magic_name, line, _stack_depth=_stack_depth + 1)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """``%%name line``, with the lines below it."""
        if magic_name == "timeit" and records.number("WORLD_SIZE", 1) > 1:
            line = _timed_alike(line)
        text = self.compile.cell.text if self.compile.cell else cell
        text += "" if text.endswith("\n") else "\n"  # the lines below the magic end with one
        before = len(cell_text.split_lines(text)) - len(cell_text.split_lines(cell))
        with self.compile.lines(before):
            return super().run_cell_magic(magic_name, line, cell)

    def system(self, cmd: str) -> None:
        """``!cmd``."""
        place, text = self.place(), self.var_expand(cmd, depth=1)
        status = commands.run_line(cmd, text, place, self.count((place, cmd)))
        self.user_ns["_exit_code"] = status

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        """``x = !cmd``."""
        status, text = commands.output_of(self.var_expand(cmd, depth=depth + 1))
        self.user_ns["_exit_code"] = status
        return SList(text.splitlines()) if split else text

    def _installer(self, name: str) -> Callable[[str], None]:
        """``%pip`` and the like, without IPython's advice to restart a kernel."""
        return lambda line: self.system(f"{name} {line}")

    def _write_file(self, line: str, cell: str) -> None:
        """``%%writefile``: the file is written as a whole, because ranks may share its folder."""
        append = line.startswith(("-a ", "--append "))
        name = line.partition(" ")[2] if append else line
        path = os.path.abspath(os.path.expanduser(name.strip().strip("\"'")))
        is_new = not os.path.exists(path)
        print("Appending to" if append else "Writing" if is_new else "Overwriting", name)
        data, previous = cell.encode("utf-8"), self._written.get(path)
        if append and previous is None:
            place = self.place()
            key = f"{place[0]} line {place[1]}: {path} ({self.count((place, path))})"
            once(key, path, lambda: _append(path, data))
            return
        # Built on what this process wrote, not on the file, to which another rank may have added the same already.
        self._written[path] = (previous or b"") + data if append else data
        records.write_bytes(path, self._written[path])

    def safe_execfile(self, fname: Any, *where: Any, **options: Any) -> None:
        """``%run``: an error in the file is one of the cell."""
        super().safe_execfile(fname, *where, **{**options, "raise_exceptions": True})

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> bool:
        """Run a part of a cell; returns whether it failed."""
        try:
            if async_:
                await eval(code_obj, self.user_global_ns, self.user_ns)  # noqa: S307 - the user's own code
            else:
                exec(code_obj, self.user_global_ns, self.user_ns)  # noqa: S102 - the same
        except BaseException as error:  # noqa: BLE001 - it is raised once IPython has ended the cell
            _show_captured()
            self.error = self.error or error
            if result is not None:
                result.error_in_exec = error
            return True
        return False

    def transform_cell(self, raw_cell: str) -> str:
        """A cell as Python. Compiling it says what is wrong where IPython cannot read it."""
        stripped, lines_before = cell_text.strip_leading(raw_cell)
        try:
            text: str = super().transform_cell(stripped)
        except Exception:  # noqa: BLE001 - its tokenizer fails in many ways
            text = stripped
        return "\n" * lines_before + text

    def showtraceback(self, exc_tuple: Any = None, *_: object, **__: object) -> None:
        """Show the error of a faulty repr, which does not end a notebook. Other errors are raised."""
        if exc_tuple is not None:
            traceback.print_exception(*exc_tuple)

    def showsyntaxerror(self, *_: object, **__: object) -> None:
        """Keep the error of a cell, or of the lines below a magic: it is raised."""
        self.error = self.error or sys.exc_info()[1]

    showindentationerror = showsyntaxerror

    def _format_exception_for_storage(self, *_: object, **__: object) -> dict[str, object]:
        """Return nothing to store: the history of a job is off."""
        return {}

    def run(self, cell: Cell) -> None:
        """Run a cell outside of an event loop, so that it may call ``asyncio.run``."""
        self.compile.cell, self.error = cell, None
        self._raise(self.run_cell(cell.text, store_history=True))

    async def run_in_loop(self, cell: Cell) -> None:
        """Run a cell in the event loop that runs."""
        self.compile.cell, self.error = cell, None
        text = self.transform_cell(cell.text)
        result = await self.run_cell_async(cell.text, store_history=True, transformed_cell=text)
        self.events.trigger("post_execute")
        self.events.trigger("post_run_cell", result)
        self._raise(result)

    def _raise(self, result: Any) -> None:
        error = self.error or result.error_before_exec or result.error_in_exec
        if error is not None:
            raise error


@contextlib.contextmanager
def _unprinted() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _append(path: str, data: bytes) -> int:
    with open(path, "ab") as file:
        file.write(data)
    return 0


def _show_captured() -> None:
    """Print what ``%%capture`` has kept back of a cell that fails."""
    for name in ("stdout", "stderr"):
        kept, real = getattr(sys, name), getattr(sys, f"__{name}__")
        if isinstance(kept, io.StringIO):
            real.write(kept.getvalue())


def make_shell(main: types.ModuleType, on_parsed: Parsed) -> Shell:
    """The shell whose cells run in this module."""
    folder, process = tempfile.mkdtemp(prefix="hyperpod-ipython-"), os.getpid()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor" if IPython.version_info >= (9,) else "NoColor"
    shell = Shell.instance(config=config, ipython_dir=folder, user_module=main)
    shell.compile.on_parsed = on_parsed
    return shell
