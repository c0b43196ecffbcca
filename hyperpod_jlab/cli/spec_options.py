"""The options of ``hpj submit`` and ``hpj clone``, made from the spec's model: a field that is added there appears here by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import click

from hyperpod_jlab.cli.parameters import RUN, ChoiceParam, TextParam, WordsParam
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.options import SpecOption, option_name, spec_options, to_spec_data
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.model.validation import parse

Command = TypeVar("Command", bound=click.Command)

OPTIONS: Mapping[str, SpecOption] = {
    option_name(entry.option.flag): entry for entry in spec_options(JobSpec)
}
"""All options of the spec, by their names in Python."""


class SpecClickOption(click.Option):
    """An option whose value the spec's model parses; forms and help show the basic ones first."""

    def __init__(self, entry: SpecOption) -> None:
        self.entry = entry
        is_switch = entry.kind == "bool"
        super().__init__(
            [entry.option.flag],
            type=bool if is_switch else _type(entry),
            default=None,
            multiple=bool(entry.option.repeat),
            metavar=None if is_switch else _metavar(entry),
            help=_help(entry),
        )


def add_spec_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Add the spec's options to a command, but for those whose path begins with one of the words in `without`."""

    def add(command: Command) -> Command:
        entries = [entry for entry in OPTIONS.values() if entry.path[0] not in without]
        entries.sort(key=lambda entry: not entry.option.basic)
        command.params.extend(SpecClickOption(entry) for entry in entries)
        return command

    return add


def data_of(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[SpecOption]]:
    """The spec's data for the options that were given, and which ones those were.

    Raises:
        InvalidInputError: An option's text is not of its form.
    """
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name in OPTIONS and value is not None and value != ():
            given[name] = _value(OPTIONS[name], value)
    data, _ = to_spec_data(JobSpec, given)
    return data, [OPTIONS[name] for name in given]


def parse_spec(
    data: Mapping[str, Any], given: Iterable[SpecOption], origin: str | None = None
) -> JobSpec:
    """Validate the spec; what is wrong with an option's value is told under the option's name.

    Args:
        data: The spec's data.
        given: The options that were given.
        origin: Where the rest of the data comes from, such as a file's name.

    Raises:
        InvalidInputError: Something in it is wrong.
    """
    try:
        return parse(JobSpec, data)
    except InvalidInputError as error:
        raise _named(error, given, origin) from error


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested data, `over` going first."""
    merged = dict(under)
    for key, value in over.items():
        before = merged.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(before, value) if both else value  # type: ignore[arg-type]
    return merged


def _named(
    error: InvalidInputError, given: Iterable[SpecOption], origin: str | None
) -> InvalidInputError:
    field = str(error.detail.get("field") or "")
    problem = error.detail["problems"][0]["message"] if "problems" in error.detail else None
    for entry in given:
        place = ".".join(entry.path)
        if problem is not None and (field == place or field.startswith(f"{place}.")):
            flag = long_flag(entry)
            return InvalidInputError(
                f"{flag}: {problem}",
                code=error.code,
                hint=error.hint,
                detail={**error.detail, "option": flag},
            )
    if origin is None:
        return error
    return InvalidInputError(
        f"{origin}: {error.message}", code=error.code, hint=error.hint, detail=error.detail
    )


def long_flag(entry: SpecOption) -> str:
    """The option as it is typed."""
    return entry.option.flag.split("/", maxsplit=1)[0]


def _value(entry: SpecOption, value: Any) -> Any:
    if entry.option.repeat == "map":
        return dict(_pair(entry, item) for item in value)
    if entry.option.repeat == "secrets":
        return dict(_secret(entry, item) for item in value)
    if entry.option.repeat == "flags":
        return dict(_flag(item) for item in value)
    return list(value) if entry.option.repeat == "list" else value


def _pair(entry: SpecOption, item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    flag = long_flag(entry)
    if not equals:
        shown = name if len(name) <= 60 else name[:60] + "..."
        raise _refused(
            entry,
            f"{flag}: '{shown}' has no '='",
            f'write {flag} NAME=VALUE; your own variable is not taken over unless you write {flag} NAME="$NAME"',
        )
    if "\n" in item or "\r" in item:
        raise _refused(
            entry,
            f"{flag}: {name.splitlines()[0][:60] if name else 'the name'} holds a line break",
            "put a value of several lines into a spec file (--spec)",
        )
    return name, value


def _secret(entry: SpecOption, item: str) -> tuple[str, str]:
    name, equals, reference = item.partition("=")
    if equals and not reference:
        raise _refused(
            entry,
            f"{long_flag(entry)}: the reference behind '=' is empty",
            f"write {long_flag(entry)} NAME to send the value of your own variable NAME",
        )
    return name, reference


def _flag(item: str) -> tuple[str, str | bool]:
    """A flag alone is a switch; so is one that is said to be true or false."""
    name, equals, value = item.partition("=")
    if not equals or value in {"true", "false"}:
        return name, value != "false"
    return name, value


def _refused(entry: SpecOption, message: str, hint: str) -> InvalidInputError:
    detail = {"field": ".".join(entry.path), "option": long_flag(entry)}
    return InvalidInputError(message, code="invalid_spec", hint=hint, detail=detail)


def _type(entry: SpecOption) -> TextParam:
    if entry.choices:
        return WordsParam(entry.choices, "word")
    if entry.path == ("after",):
        return RUN
    if entry.path in {("queue",), ("account",), ("qos",)}:
        return ChoiceParam(entry.path[0])
    if entry.option.metavar in {"PATH", "DIR"}:
        # Only for completion: the path may be one of the nodes.
        return click.Path()
    return click.STRING


def _metavar(entry: SpecOption) -> str:
    if entry.choices:
        return "|".join(entry.choices)
    return entry.option.metavar or ("N" if entry.kind == "int" else "TEXT")


def _help(entry: SpecOption) -> str:
    text = entry.help
    if entry.option.repeat:
        text += " May be given several times."
    shown = entry.kind == "int" and entry.default is not None
    return f"{text} Default: {entry.default}." if shown else text


def secrets_here(names: Iterable[str], prompt: Callable[[str], str] | None) -> dict[str, str]:
    """Values of secrets that have no reference: from this process's own variables, else asked for.

    Args:
        names: The secrets' names.
        prompt: Asks for a value; None when nobody can be asked.
    """
    values = {}
    for name in names:
        if name in os.environ:
            values[name] = os.environ[name]
        elif prompt is not None:
            values[name] = prompt(name)
    return values
