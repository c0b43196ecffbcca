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
    print_traceback(error)
    failure = translate(error)
    code = close_output(failure.exit_code, as_json=as_json)
    try:
        print(_as_json(failure) if as_json else _as_text(failure), file=sys.stderr, flush=True)
    except OSError:
        _discard(2)  # nobody listens on stderr either
    return code


def print_traceback(error: BaseException) -> None:
    """Print the stack trace, for whoever looks for a fault of ours."""
    if os.environ.get(_DEBUG):
        import traceback

        from hyperpod_jlab.cli.terminal import safe_text

        stack = "".join(traceback.format_exception(error))
        print(safe_text(stack, sys.stderr), end="", file=sys.stderr)


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
        return _usage_error(error)
    if isinstance(error, OSError) and _is_output_error(error):
        return output_error(error)
    return HyperpodError(
        f"internal error: {type(error).__name__}: {mask_credentials(error)}",
        hint=f"this is a bug in hyperpod_jlab; {_DEBUG}=1 shows the traceback",
    )


def _usage_error(error: click.ClickException) -> CommandLineError:
    """What click has to say, with the option or command that was probably meant."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        option_name = error.option_name
        return CommandLineError(
            f"unknown option {option_name[:60]}",
            hint=_option_hint(option_name, context),
            detail={"option": option_name[:60]},
        )
    hint = f"see: {context.command_path} --help" if context is not None else None
    detail = {}
    parameter = getattr(error, "param", None)
    if isinstance(parameter, click.Option):
        detail["option"] = max(parameter.opts, key=len)
    # click lists choices on lines of their own.
    message = " ".join(error.format_message().split()).rstrip(".")
    return CommandLineError(message, hint=hint, detail=detail)


def _option_hint(option_name: str, context: click.Context | None) -> str | None:
    if context is None:
        return None
    names = [
        name
        for parameter in context.command.get_params(context)
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]
    if nearest(option_name, names) is not None:
        return nearest_hint(option_name, names)
    return f"see: {context.command_path} --help"


def _as_json(error: HyperpodError) -> str:
    return json.dumps(error.to_dict(), default=str)


def _as_text(error: HyperpodError) -> str:
    from hyperpod_jlab.cli.terminal import printable

    plain = isinstance(error, (InterruptionError, RunEndedError))
    lines = [printable(error.message) if plain else f"error: {printable(error.message)}"]
    other_findings = error.detail.get("findings", [])[1:]
    lines += [f"error: {printable(finding['message'])}" for finding in other_findings]
    if error.hint:
        lines.append(f"hint: {printable(error.hint)}")
    return "\n".join(lines)


def _is_output_error(error: OSError) -> bool:
    """Whether it was raised where this package prints; it opens and writes files elsewhere."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    module = "" if frame is None else str(frame.tb_frame.f_globals.get("__name__"))
    is_own = module.startswith("hyperpod_jlab.") and (
        ".cli." in module or module.endswith("commands")
    )
    return error.filename is None and (is_own or module.startswith("click."))


def _discard(descriptor: int) -> None:
    """Point stdout or stderr at nothing, so that the interpreter's own flush at exit stays quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
