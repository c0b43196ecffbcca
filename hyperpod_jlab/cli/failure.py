"""Error output: a message and a hint, or one line of JSON, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from typing import ClassVar

import click

from hyperpod_jlab.cli.invocation import InterruptionError
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, mask_credentials, nearest, nearest_hint

_DEBUG = "HYPERPOD_DEBUG"


class CommandLineError(InvalidInputError):
    """The command line is invalid."""

    default_code = "usage"


class RunEndedError(HyperpodError):
    """The awaited run did not succeed: sets the exit code, not an error of this program."""

    exit_code: ClassVar[int] = 1


class ChecksFailedError(HyperpodError):
    """A check of ``hpj doctor`` failed."""

    default_code = "doctor"
    exit_code = 2


class OutputError(HyperpodError):
    """Output cannot be written, for example because the disk is full."""

    default_code = "output"
    exit_code = 2


def report(error: BaseException, *, as_json: bool) -> int:
    """Print an error on stderr; returns the exit code."""
    if isinstance(error, SystemExit):
        return close_output(error.code if isinstance(error.code, int) else 0)
    print_traceback(error)
    failure = translate(error)
    code = close_output(failure.exit_code, as_json=as_json)
    try:
        print(_as_json(failure) if as_json else _as_text(failure), file=sys.stderr, flush=True)
    except OSError:
        _discard(2)  # stderr is closed, too
    return code


def print_traceback(error: BaseException) -> None:
    """Print the stack trace, to debug an internal error."""
    if os.environ.get(_DEBUG):
        import traceback

        from hyperpod_jlab.cli.terminal import safe_text

        stack = "".join(traceback.format_exception(error))
        print(safe_text(stack, sys.stderr), end="", file=sys.stderr)


def close_output(code: int, *, as_json: bool = False) -> int:
    """Flush the output; a closed pipe is not an error."""
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
    """The error for a failed write to the standard output."""
    return OutputError(f"the output cannot be written: {error.strerror}")


def translate(error: BaseException) -> HyperpodError:
    """Convert any exception to our error."""
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
    """Click's error, with the option or command that was probably meant."""
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
    # Click lists choices on separate lines.
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
    if error.hint:
        lines.append(f"hint: {printable(error.hint)}")
    for finding in error.detail.get("findings", [])[1:]:
        lines.append(f"error: {printable(finding['message'])}")
        if finding["hint"]:
            lines.append(f"hint: {printable(finding['hint'])}")
    return "\n".join(lines)


def _is_output_error(error: OSError) -> bool:
    """Whether it was raised by this package's output; other code opens and writes files."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    module = "" if frame is None else str(frame.tb_frame.f_globals.get("__name__"))
    is_own = module.startswith("hyperpod_jlab.") and (".cli." in module or module.endswith("commands"))
    return error.filename is None and (is_own or module.startswith("click."))


def _discard(descriptor: int) -> None:
    """Redirect stdout or stderr to /dev/null, so that the interpreter's flush at exit cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
