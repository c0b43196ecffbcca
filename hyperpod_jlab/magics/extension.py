"""The magics as IPython classes."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import shlex
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem, ShellComplete
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from hyperpod_jlab import api
from hyperpod_jlab.cli.failure import CommandLineError, RunEndedError, print_traceback, translate
from hyperpod_jlab.cli.invocation import InterruptionError, Invocation, wants_json
from hyperpod_jlab.cli.root import cli
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.magics.cell import CellInvocation, run_cell
from hyperpod_jlab.magics.kernel import MAGIC, kernel_cell
from hyperpod_jlab.run.services import Hyperpod

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

# --------------------------------------------------------------------------------------------------
# Runs an ``hpj`` command in a kernel: in its own thread, because the kernel's event loop is
# running.

T = TypeVar("T")


class _Loop:
    """Runs a command's coroutines; another thread can interrupt it."""

    def __init__(self) -> None:
        self._interrupted = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def run(self, coroutine_function: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine on a new event loop.

        Raises:
            KeyboardInterrupt: It was interrupted.
        """
        try:
            return asyncio.run(self._run_interruptible(coroutine_function))
        except asyncio.CancelledError:
            if self._interrupted:
                raise KeyboardInterrupt from None
            raise

    def interrupt(self) -> None:
        """Interrupt the current coroutine, and later ones."""
        self._interrupted = True
        if self._running is not None:
            loop, task = self._running
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(task.cancel)

    async def _run_interruptible(self, coroutine_function: Callable[[], Awaitable[T]]) -> T:
        task = asyncio.current_task()
        if task is not None:
            self._running = (asyncio.get_running_loop(), task)
        try:
            if self._interrupted:
                raise asyncio.CancelledError
            return await coroutine_function()
        finally:
            self._running = None


def run_command(command: click.Command, name: str, argv: Sequence[str], call: Invocation) -> None:
    """Run a click command and wait for it; an interrupt ends only the wait, never a run.

    Args:
        command: The command.
        name: The name that the user typed.
        argv: Its arguments.
        call: The call's context.

    Raises:
        BaseException: Whatever the command raises; InterruptionError when it has a message about an
            interrupt.
    """
    loop = _Loop()
    call.run = loop.run
    finished: Future[None] = Future()

    def coroutine_function() -> None:
        try:
            with command.make_context(name, list(argv), obj=call) as context:
                command.invoke(context)
            finished.set_result(None)
        except click.exceptions.Exit:
            finished.set_result(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            finished.set_exception(error)

    # The context tells the kernel which cell the output belongs to.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(coroutine_function,), name="hyperpod_jlab", daemon=True).start()
    try:
        finished.result()
    except KeyboardInterrupt:
        if finished.done():
            raise
        loop.interrupt()
        finished.result()


# --------------------------------------------------------------------------------------------------
# Errors as a notebook user sees them: one message and a hint, without a stack trace.


class MagicError(HyperpodError):
    """An error of a magic; IPython renders it itself.

    Args:
        error: The error.
        as_json: Whether to show it as one line of JSON.
    """

    def __init__(self, error: HyperpodError, *, as_json: bool = False) -> None:
        super().__init__(error.message, code=error.code, hint=error.hint, detail=error.detail)
        self._as_json = as_json
        self._is_plain = isinstance(error, (InterruptionError, RunEndedError))

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: the text shown instead of a traceback."""
        if self._as_json:
            return [json.dumps(self.to_dict(), default=str)]
        return list(self._lines())

    def _lines(self) -> Iterator[str]:
        start = "" if self._is_plain else "error: "
        yield f"{start}{printable(self.message)} [{self.code}]"
        for finding in self.detail.get("findings", [])[1:]:
            yield f"error: {printable(finding['message'])} [{finding['code']}]"
        if self.hint:
            yield f"hint: {printable(self.hint)}"


def magic_error(error: BaseException, *, as_json: bool) -> MagicError:
    """The error to raise for any exception of a command."""
    print_traceback(error)
    return MagicError(translate(error), as_json=as_json)


LINE_MAGIC = "%hyperpod"


@magics_class
class HyperpodMagics(Magics):
    """``%hyperpod`` and ``%%hyperpod``."""

    @line_cell_magic
    def hyperpod(self, line: str, cell: str | None = None) -> None:
        """Run the cell on a cluster, or do what ``hpj`` does.

        ``%%hyperpod --nodes 2`` on a cell's first line sends the cell; ``%%hyperpod --help`` shows the options. ``%hyperpod`` alone lists
        the runs; ``%hyperpod logs RUN``, ``%hyperpod cancel RUN`` and the others are the commands of ``hpj``.
        """
        if cell is None:
            _run(cli, LINE_MAGIC, _split_line(line) or ["runs"], Invocation())
            return
        shell = self.shell
        if shell is None:
            raise RuntimeError("IPython is not available")

        def announce(run_id: str, name: str | None) -> None:
            # With the current configuration: the commands read it each time.
            run = api.Run(Hyperpod(), run_id)
            if name is not None:
                shell.user_ns[name] = run
            if not call.as_json:
                display(run)  # type: ignore[no-untyped-call]

        call = CellInvocation(cell=kernel_cell(shell, line, cell), announce=announce)
        _run(run_cell, MAGIC, _split_line(line), call)


def _run(command: click.Command, name: str, argv: Sequence[str], call: Invocation) -> None:
    call.as_json = wants_json(argv)
    try:
        if command is cli and argv[0].startswith("-"):
            _check_cell_options(argv[0])
        run_command(command, name, argv, call)
    except BaseException as error:  # noqa: BLE001 - the one place where every error gets its words
        raise magic_error(error, as_json=call.as_json) from None


def _check_cell_options(argument: str) -> None:
    """The error for ``%hyperpod --nodes 2``."""
    names = {name for parameter in run_cell.params for name in parameter.opts}
    cell_options = {name for parameter in cli.params for name in parameter.opts}
    if argument.partition("=")[0] in names - cell_options:
        raise CommandLineError(
            f"{argument[:60]} is an option for running a cell",
            hint="write %%hyperpod, with two %, on the first line of the cell",
        )


def _split_line(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise magic_error(_unclosed(error), as_json=False) from None


def _unclosed(error: ValueError) -> HyperpodError:
    return CommandLineError(
        f"the line cannot be read: {str(error).lower()}", hint="put a \\ before a literal quotation mark"
    )


# --------------------------------------------------------------------------------------------------
# Completion after ``%hyperpod`` and ``%%hyperpod``: what a shell would offer after ``hpj``.
#
# It runs on every press of the Tab key, so it must neither fail nor print.

_LINE = "%hyperpod"
_CELL = "%%hyperpod"


def install_completer(shell: InteractiveShell) -> None:
    """Install our completer in this shell, once; IPython before 8.6 does not support it."""
    matchers = getattr(shell.Completer, "custom_matchers", None)
    if matchers is not None and _matcher not in matchers:
        _matcher.matcher_api_version = 2  # type: ignore[attr-defined]
        _matcher.matcher_identifier = "hyperpod_jlab"  # type: ignore[attr-defined]
        _matcher.matcher_priority = 100  # type: ignore[attr-defined]
        matchers.append(_matcher)


def _matcher(context: CompletionContext) -> SimpleMatcherResult:
    from IPython.core.completer import SimpleCompletion

    line = context.text_until_cursor.lstrip()
    items = list_completions(line)
    fragment = _last_argument(line)
    # Text before one of IPython's delimiters, as in --launcher=to, is not part of the fragment.
    cut_length = len(fragment) - len(context.token) if fragment.endswith(context.token) else 0
    completions = [
        SimpleCompletion(text=item.value[cut_length:] if _holds(item, fragment[:cut_length]) else item.value)
        for item in items
    ]
    return {
        "completions": completions,
        "suppress": bool(completions),
        "ordered": True,
        "matched_fragment": context.token,
    }


def list_completions(line: str) -> list[CompletionItem]:
    """The completions at the end of a line."""
    for magic in (_CELL, _LINE):
        if line.startswith(f"{magic} "):
            argv = _split(line[len(magic) :])
            if argv is None:
                return []
            return _completions(_command(magic), magic, argv[:-1], argv[-1])
    return []


def _command(magic: str) -> click.Command:
    if magic == _CELL:
        from hyperpod_jlab.magics.cell import run_cell

        return run_cell
    from hyperpod_jlab.cli.root import cli

    return cli


def _completions(command: click.Command, name: str, argv: list[str], incomplete: str) -> list[CompletionItem]:
    if "--" in argv:
        return []
    try:
        completions: Iterable[CompletionItem] = ShellComplete(command, {}, name, "_HYPERPOD_COMPLETE").get_completions(
            argv, incomplete
        )
        # IPython itself completes file names.
        return [item for item in completions if item.type == "plain"]
    except Exception:  # noqa: BLE001 - see the module's docstring
        return []


def _split(text: str) -> list[str] | None:
    """The words up to the cursor, the last one incomplete; None within quotation marks."""
    try:
        argv = shlex.split(text)
    except ValueError:
        return None
    return argv if argv and not text[-1].isspace() else [*argv, ""]


def _last_argument(line: str) -> str:
    return line.rpartition(" ")[2]


def _holds(item: CompletionItem, start: str) -> bool:
    return bool(start) and str(item.value).startswith(start)
