"""Every error as the user sees it: a line and a hint, or one line of JSON, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from typing import ClassVar

import click

from hyperpod_jlab.cli.invocation import InterruptionError
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    mask_credentials,
    nearest,
    nearest_hint,
)

_DEBUG = "HYPERPOD_DEBUG"


class CommandLineError(InvalidInputError):
    """The command line itself cannot be understood."""

    default_code = "usage"


class RunEndedError(HyperpodError):
    """The run that was waited for ended otherwise than ``succeeded``: no error of this program, but an exit code."""

    exit_code: ClassVar[int] = 1


class ChecksFailedError(HyperpodError):
    """A check of ``hpj doctor`` failed."""

    default_code = "doctor"
    exit_code = 2


class OutputError(HyperpodError):
    """What was to be printed cannot be: the disk is full, say."""

    default_code = "output"
    exit_code = 2


def report(error: BaseException, *, as_json: bool) -> int:
    """Tell the user what went wrong on stderr; returns the exit code."""
    if isinstance(error, SystemExit):
        return close_output(error.code if isinstance(error.code, int) else 0)
    show_origin(error)
    told = translate(error)
    code = close_output(told.exit_code, as_json=as_json)
    try:
        print(_as_json(told) if as_json else _as_text(told), file=sys.stderr, flush=True)
    except OSError:
        _discard(2)  # nobody listens on stderr either
    return code


def show_origin(error: BaseException) -> None:
    """Print the stack trace, for whoever looks for a fault of ours."""
    if os.environ.get(_DEBUG):
        import traceback

        from hyperpod_jlab.cli.terminal import shown_text

        told = "".join(traceback.format_exception(error))
        print(shown_text(told, sys.stderr), end="", file=sys.stderr)


def close_output(code: int, *, as_json: bool = False) -> int:
    """Flush what was printed; a reader that has gone away is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(1)
    except OSError as error:
        _discard(1)
        if code == 0:
            return report(output_error(error), as_json=as_json)
    return code


def output_error(error: OSError) -> OutputError:
    """The error for a write to the standard output that failed."""
    return OutputError(f"the output cannot be written: {error.strerror}")


def translate(error: BaseException) -> HyperpodError:
    """The error of ours for any exception."""
    if isinstance(error, HyperpodError):
        return error
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return InterruptionError("interrupted")
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, OSError) and _is_of_printing(error):
        return output_error(error)
    return HyperpodError(
        f"internal error: {type(error).__name__}: {mask_credentials(error)}",
        hint=f"this is a bug in hyperpod_jlab; {_DEBUG}=1 shows the traceback",
    )


def _usage(error: click.ClickException) -> CommandLineError:
    """What click has to say, with the option or command that was probably meant."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        given = error.option_name
        return CommandLineError(
            f"unknown option {given[:60]}",
            hint=_option_hint(given, context),
            detail={"option": given[:60]},
        )
    hint = f"see: {context.command_path} --help" if context is not None else None
    detail = {}
    parameter = getattr(error, "param", None)
    if isinstance(parameter, click.Option):
        detail["option"] = max(parameter.opts, key=len)
    # click lists choices on lines of their own.
    message = " ".join(error.format_message().split()).rstrip(".")
    return CommandLineError(message, hint=hint, detail=detail)


def _option_hint(given: str, context: click.Context | None) -> str | None:
    if context is None:
        return None
    names = [
        name
        for parameter in context.command.get_params(context)
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]
    if nearest(given, names) is not None:
        return nearest_hint(given, names)
    return f"see: {context.command_path} --help"


def _as_json(error: HyperpodError) -> str:
    return json.dumps(error.to_dict(), default=str)


def _as_text(error: HyperpodError) -> str:
    from hyperpod_jlab.cli.terminal import printable

    plain = isinstance(error, (InterruptionError, RunEndedError))
    lines = [printable(error.message) if plain else f"error: {printable(error.message)}"]
    others = error.detail.get("findings", [])[1:]
    lines += [f"error: {printable(finding['message'])}" for finding in others]
    if error.hint:
        lines.append(f"hint: {printable(error.hint)}")
    return "\n".join(lines)


def _is_of_printing(error: OSError) -> bool:
    """Whether it was raised where this package prints; it opens and writes files elsewhere."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    module = "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
    ours = module.startswith("hyperpod_jlab.") and (
        ".cli." in module or module.endswith("commands")
    )
    return error.filename is None and (ours or module.startswith("click."))


def _discard(descriptor: int) -> None:
    """Point stdout or stderr at nothing, so that the interpreter's own flush at exit stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
