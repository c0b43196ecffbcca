"""State of one call of ``hpj`` beyond its command's own options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperpod_jlab.core.errors import HyperpodError

if TYPE_CHECKING:
    import asyncio

    from hyperpod_jlab.run.services import Hyperpod

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., object] | click.Command)

JSON_FLAG = "--json"


class InterruptionError(HyperpodError):
    """The user pressed Ctrl-C; work on a cluster continues."""

    default_code = "interrupted"
    exit_code = 130


@dataclass
class Invocation:
    """One call of ``hpj``.

    Attributes:
        as_json: Whether output and errors are JSON.
        on_interrupt: Returns the message when Ctrl-C ends this call; None for no message.
        closed_pipe: Exit code when the reader of the output closes the pipe.
        run: Runs a command's asynchronous work; None: on an event loop in this thread.
    """

    as_json: bool = False
    on_interrupt: Callable[[], InterruptionError] | None = None
    closed_pipe: int = 0
    run: Callable[[Callable[[], Awaitable[Any]]], Any] | None = None


def invocation() -> Invocation:
    """The current call."""
    return click.get_current_context().ensure_object(Invocation)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the arguments contain ``--json``, apart from those for the user's program."""
    own_arguments = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return JSON_FLAG in own_arguments


def json_option(command: Command, *, hidden: bool = False) -> Command:
    """Add ``--json`` to a command; hidden: not in its help."""
    return click.option(
        JSON_FLAG,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=hidden,
        callback=_set_json,
        help="Print JSON. Errors are one line of JSON.",
    )(command)


def _set_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Invocation).as_json = True


def run_cancelled(work: Callable[[], Awaitable[T]]) -> T:
    """Run it to its end. Ctrl-C cancels it instead of being raised anywhere inside, so that it can clean up.

    Raises:
        KeyboardInterrupt: It was cancelled, and has ended.
    """
    import asyncio
    import signal

    from hyperpod_jlab.cli.interrupts import raise_interrupts

    call = invocation()
    if call.run is not None:  # in a kernel, whose interrupts do the same
        result: T = call.run(work)
        return result

    async def cancelled_by_interrupt() -> T:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        return await work()

    try:
        return asyncio.run(cancelled_by_interrupt())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        raise_interrupts()


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report errors of forgotten tasks. Our own are left out: they come from queries that ran beside the one whose error ends the command."""
    if not isinstance(context.get("exception"), HyperpodError):
        loop.default_exception_handler(context)


def with_services(work: Callable[[Hyperpod], Awaitable[T]], *, asking: bool = False) -> T:
    """Run `work` with the services of the user's configuration.

    Args:
        work: The work.
        asking: Whether it only queries clusters, so that slow progress is reported on a terminal.

    Raises:
        InterruptionError: Ctrl-C was pressed and the command has a message for it.
    """
    import asyncio

    from hyperpod_jlab.run.services import Hyperpod

    async def run() -> T:
        asyncio.get_running_loop().set_exception_handler(_on_loop_error)
        hyperpod = Hyperpod()
        try:
            if not asking:
                return await work(hyperpod)
            from hyperpod_jlab.cli.slow_steps import slow_steps

            async with slow_steps("asking the cluster"):
                return await work(hyperpod)
        finally:
            await hyperpod.close()

    call = invocation()
    try:
        return asyncio.run(run()) if call.run is None else call.run(run)
    except KeyboardInterrupt:
        if call.on_interrupt is None:
            raise
        raise call.on_interrupt() from None
