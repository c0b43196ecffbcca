"""The options of ``hpj submit`` and ``hpj clone``, from the list generated from the spec's model (see `hyperpod_jlab.core.options`)."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.parameters import RUN, ChoiceParam, SuggestedTextParam
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.options import known_options, option_name, to_spec_data
from hyperpod_jlab.storage import descent

if TYPE_CHECKING:
    from hyperpod_jlab.cli.parameters import TextParam
    from hyperpod_jlab.core.options import SpecOption
    from hyperpod_jlab.core.spec import JobSpec

Command = TypeVar("Command", bound=click.Command)

OPTIONS: Mapping[str, SpecOption] = {option_name(entry.option.flag): entry for entry in known_options()}
"""All options of the spec, by their names in Python."""


_SLURM_NAMES = {"--time-limit": "--time"}


class SpecClickOption(click.Option):
    """An option whose value the spec's model parses; forms and help show basic options first."""

    def __init__(self, entry: SpecOption) -> None:
        self.entry = entry
        is_switch = entry.kind == "bool"
        super().__init__(
            [entry.option.flag, *([entry.option.short] if entry.option.short else [])],
            type=bool if is_switch else _type(entry),
            default=None,
            multiple=bool(entry.option.repeat),
            metavar=None if is_switch else _metavar(entry),
            help=_help(entry),
        )

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Accept Slurm's name of the option too; the help shows only ours."""
        super().add_to_parser(parser, ctx)
        alias = _SLURM_NAMES.get(self.entry.option.flag)
        if alias is not None:
            parser.add_option(obj=self, opts=[alias], dest=self.name, nargs=self.nargs)


_METRIC = ("metric_patterns",)
_METRIC_HINT = "write --metric 'NAME=REGEX' with one group around the number, such as --metric 'psnr=PSNR ([0-9.]+)'"


def add_spec_options(*, excluded: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add the spec's options to a command, except those whose path begins with a name in `excluded`."""

    def add(command: Command) -> Command:
        entries = [entry for entry in OPTIONS.values() if entry.path[0] not in excluded]
        entries.sort(key=lambda entry: not entry.option.basic)
        command.params.extend(SpecClickOption(entry) for entry in entries)
        return command

    return add


def options_to_data(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[SpecOption]]:
    """The spec's data for the given options, and the list of these options.

    Raises:
        InvalidInputError: An option's text is invalid.
    """
    options: dict[str, Any] = {}
    for name, value in values.items():
        if name in OPTIONS and value is not None and value != ():
            options[name] = _value(OPTIONS[name], value)
    data, _ = to_spec_data(OPTIONS.values(), options)
    return data, [OPTIONS[name] for name in options]


def parse_spec(data: Mapping[str, Any], options: Iterable[SpecOption], origin: str | None = None) -> JobSpec:
    """Validate the spec; errors in an option's value name the option.

    Args:
        data: The spec's data.
        options: The given options.
        origin: The source of the other data, such as a file's name.

    Raises:
        InvalidInputError: The spec is invalid.
    """
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.core.validation import parse

    try:
        return parse(JobSpec, data)
    except InvalidInputError as error:
        raise _name_option(error, options, origin) from error


def _name_option(error: InvalidInputError, options: Iterable[SpecOption], origin: str | None) -> InvalidInputError:
    field = str(error.detail.get("field") or "")
    problem = error.detail["problems"][0]["message"] if "problems" in error.detail else None
    for entry in options:
        path = ".".join(entry.path)
        if problem is not None and (field == path or field.startswith(f"{path}.")):
            flag = long_flag(entry)
            return InvalidInputError(
                f"{flag}: {problem}", code=error.code, hint=error.hint, detail={**error.detail, "option": flag}
            )
    if origin is None:
        return error
    return InvalidInputError(f"{origin}: {error.message}", code=error.code, hint=error.hint, detail=error.detail)


def long_flag(entry: SpecOption) -> str:
    """The option as it is typed."""
    return entry.option.flag.split("/", maxsplit=1)[0]


def _value(entry: SpecOption, value: Any) -> Any:
    if entry.option.repeat == "map":
        return _pairs(entry, value)
    if entry.option.repeat == "values":
        return {name: _parse_value(text) for name, text in _pairs(entry, value).items()}
    if entry.option.repeat == "secrets":
        return dict(_secret(entry, item) for item in value)
    if entry.option.repeat == "flags":
        return dict(_flag(item) for item in value)
    if entry.option.repeat == "list" and entry.choices:
        for item in value:
            if "," in item:
                flag = long_flag(entry)
                repeated = " ".join(f"{flag} {word.strip()}" for word in item.split(","))
                raise _option_error(
                    entry, f"{flag}: '{item[:60]}' is not one value", f"repeat the option: {repeated[:200]}"
                )
    return list(value) if entry.option.repeat == "list" else value


def _pairs(entry: SpecOption, items: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for name, value in (_pair(entry, item) for item in items):
        # Of a variable, the last value counts, as in a shell.
        if name in pairs and entry.path == _METRIC:
            raise _option_error(
                entry, f"{long_flag(entry)}: '{name[:60]}' is given twice", "give each pattern its own name"
            )
        pairs[name] = value
    return pairs


_WORDS: Mapping[str, bool | None] = {"True": True, "False": False, "None": None}


def _parse_value(text: str) -> Any:
    """The value of a notebook's parameter: JSON, or Python's words for true, false and null; anything else is text."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def _pair(entry: SpecOption, item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    flag = long_flag(entry)
    if not equals:
        display_name = name if len(name) <= 60 else name[:60] + "..."
        hint = f"write {flag} NAME=VALUE"
        if entry.path == _METRIC:
            hint = _METRIC_HINT
        elif entry.option.repeat == "values":
            hint += f", such as {flag} lr=0.01"
        else:
            hint += f'; to pass on your own variable, write {flag} NAME="$NAME"'
        raise _option_error(entry, f"{flag}: '{display_name}' has no '='", hint)
    if "\n" in item or "\r" in item:
        raise _option_error(
            entry,
            f"{flag}: {name.splitlines()[0][:60] if name else 'the name'} contains a line break",
            "put multi-line values into a spec file (--spec)",
        )
    return name, value


def _secret(entry: SpecOption, item: str) -> tuple[str, str]:
    name, equals, reference = item.partition("=")
    if equals and not reference:
        raise _option_error(
            entry,
            f"{long_flag(entry)}: the reference behind '=' is empty",
            f"write {long_flag(entry)} NAME to pass the value of your own variable NAME",
        )
    return name, reference


def _flag(item: str) -> tuple[str, str | bool]:
    """A flag without a value is a switch; so is one with the value true or false."""
    name, equals, value = item.partition("=")
    if not equals or value in {"true", "false"}:
        return name, value != "false"
    return name, value


def _option_error(entry: SpecOption, message: str, hint: str) -> InvalidInputError:
    detail = {"field": ".".join(entry.path), "option": long_flag(entry)}
    return InvalidInputError(message, code="invalid_spec", hint=hint, detail=detail)


def _type(entry: SpecOption) -> TextParam:
    if entry.choices:
        return SuggestedTextParam(entry.choices, "word")
    if entry.path == ("after",):
        return RUN
    if entry.path in {("queue",), ("account",), ("qos",)}:
        return ChoiceParam(entry.path[0])
    if entry.option.metavar in {"PATH", "DIR"}:
        # For completion only: the path may be on the nodes.
        return click.Path()
    return click.STRING


def _metavar(entry: SpecOption) -> str:
    if entry.choices:
        return "|".join(entry.choices)
    return entry.option.metavar or ("N" if entry.kind == "int" else "TEXT")


def _help(entry: SpecOption) -> str:
    text = entry.help
    if entry.option.repeat:
        text += " Repeatable."
    has_default = entry.kind == "int" and entry.default is not None
    return f"{text} Default: {entry.default}." if has_default else text


def read_local_secrets(names: Iterable[str], prompt: Callable[[str], str] | None) -> dict[str, str]:
    """Values of secrets without a reference: from this process's environment, else from a prompt.

    Args:
        names: The secrets' names.
        prompt: Asks for a value; None if there is no terminal.
    """
    values = {}
    for name in names:
        if name in os.environ:
            values[name] = os.environ[name]
        elif prompt is not None:
            values[name] = prompt(name)
    return values


# --------------------------------------------------------------------------------------------------
# Reading ``--spec FILE``: the spec as JSON or TOML.


def read_spec_file(path: Path) -> dict[str, Any]:
    """The spec's data from a file.

    Raises:
        InvalidInputError: It cannot be read, or is not a JSON or TOML object.
    """
    try:
        text = descent.read_named(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _spec_file_error(path, "is not UTF-8 text") from error
    except OSError as error:
        raise _spec_file_error(path, f"cannot be read: {error.strerror}") from error
    looks_json = path.suffix == ".json" or (path.suffix != ".toml" and text.lstrip()[:1] == "{")
    try:
        data = json.loads(text) if looks_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if looks_json else "TOML"
        raise _spec_file_error(path, f"is not valid {kind}: {error}") from error
    if not isinstance(data, dict):
        raise _spec_file_error(path, "must be an object")
    return data


def _spec_file_error(path: Path, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}: {problem}",
        code="invalid_spec_file",
        hint="a spec file is JSON or TOML with the fields of a spec, as printed by: hpj show RUN --json",
        detail={"field": "spec", "path": str(path)},
    )


# --------------------------------------------------------------------------------------------------
# From command line arguments to the spec's source: a notebook, a script, a command, or a native
# file.

_KINDS = {
    ".ipynb": "notebook",
    ".py": "script",
    ".sbatch": "native",
    ".slurm": "native",
    ".yaml": "native",
    ".yml": "native",
}
_ACCEPTED_SOURCES = (
    "a notebook (.ipynb), a Python file (.py), an sbatch script (.sbatch) or a manifest (.yaml); or a command with -c"
)


def source_data(path: str | None, command: str | None) -> dict[str, Any] | None:
    """The source's data, or None if neither is given.

    Raises:
        InvalidInputError: Both are given, the command is empty, or the file type is not supported.
    """
    if path is not None and command is not None:
        raise _source_error(
            "give a file or a command with -c, not both",
            f"arguments for the command come after --, as in: hpj submit -c '{command[:40]}' -- {path[:40]}",
        )
    if command is not None:
        if not command.strip():
            raise _source_error("the command of -c is empty", "such as: -c 'python train.py'")
        return {"kind": "command", "command": command}
    if path is None:
        return None
    return {"kind": _kind(path), "path": path}


def no_source_error() -> InvalidInputError:
    """The error when there is nothing to run."""
    return _source_error("there is nothing to run", f"give {_ACCEPTED_SOURCES}")


def _kind(path: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix in _KINDS:
        return _KINDS[suffix]
    if suffix == ".sh" and _is_sbatch(path):
        return "native"
    if Path(path).is_dir():
        raise _source_error(f"{path[:200]} is a folder", f"give {_ACCEPTED_SOURCES}")
    if suffix == ".sh":
        raise _source_error(
            f"{path[:200]} is a shell script without #SBATCH lines", f"run it as a command: -c 'bash {path[:80]}'"
        )
    raise _source_error(f"'{path[:200]}' cannot be submitted", f"give {_ACCEPTED_SOURCES}")


def _is_sbatch(path: str) -> bool:
    try:
        return b"\n#SBATCH" in descent.read_named(Path(path))
    except OSError as error:
        raise _source_error(f"{path[:200]} cannot be read: {error.strerror}", None) from error


def _source_error(message: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(message, code="invalid_source", hint=hint, detail={"field": "source"})


# --------------------------------------------------------------------------------------------------
# Commands with arguments for the user's program after ``--``.

_META_KEY = "hyperpod_jlab.program_words"


class ProgramCommand(HpjCommand):
    """A command that passes everything after ``--`` to the user's program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split off the program's arguments before parsing options."""
        if "--" in args:
            separator = args.index("--")
            ctx.meta[_META_KEY] = args[separator + 1 :]
            args = args[:separator]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show the program's arguments in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGS...]"]


def program_arguments() -> list[str] | None:
    """The arguments after ``--``; None if there is no ``--``."""
    program: list[str] | None = click.get_current_context().meta.get(_META_KEY)
    return program
