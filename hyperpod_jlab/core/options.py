"""How a spec's field appears in the user interfaces: its option on the command line and in the magic, and whether a form shows it first.

A field declares its `option` once; `spec_options` walks a model and lists all of them, so that no interface lists fields by hand.
The command line reads the same list from ``spec_options.json`` beside this module (`known_options`): pydantic and the spec's models would
double the time of ``hpj submit --help``. ``scripts/make_reference.py`` writes that file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

OPTIONS_FILE = Path(__file__).with_name("spec_options.json")
"""The options of `JobSpec`, written by `dump_options`."""

Repeat = Literal["", "list", "map", "secrets", "flags", "values"]


@dataclass(frozen=True)
class Option:
    """How a field appears in the user interfaces.

    Attributes:
        flag: The long option; ``--yes/--no`` for a switch.
        metavar: The name of the option's value, or empty.
        basic: Whether forms show it before the others.
        repeat: ``list`` if it may be repeated, ``map`` if each is ``K=V``, ``secrets`` if each is ``NAME`` or ``NAME=REF``,
            ``flags`` if each is ``NAME`` or ``NAME=VALUE``, ``values`` if each is ``NAME=VALUE`` with a number, a text or another JSON value.
        short: The short option, or empty.
    """

    flag: str
    metavar: str = ""
    basic: bool = False
    repeat: Repeat = ""
    short: str = ""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Add the option to the field's JSON schema, as ``x-option``."""
        schema: dict[str, Any] = handler(core_schema)
        schema["x-option"] = {"flag": self.flag, "basic": self.basic, "repeat": self.repeat}
        return schema


def option(flag: str, *, metavar: str = "", basic: bool = False, repeat: Repeat = "", short: str = "") -> Option:
    """Mark a field as an option of the command line and the magic (see `Option`)."""
    return Option(flag, metavar, basic, repeat, short)


@dataclass(frozen=True)
class SpecOption:
    """An option with the path of its field in the spec.

    Attributes:
        path: Names of the fields from the spec down, such as ``("resources", "nodes")``.
        option: Its flag and form.
        help: The field's description.
        choices: The allowed values, or empty.
        kind: Type of one value.
        default: The field's default, or None.
    """

    path: tuple[str, ...]
    option: Option
    help: str
    choices: tuple[str, ...]
    kind: Literal["text", "int", "bool"]
    default: Any


def dump_options(model: type[BaseModel]) -> str:
    """The options of a model as the text of `OPTIONS_FILE`."""
    rows = [asdict(entry) for entry in spec_options(model)]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


@cache
def known_options() -> Sequence[SpecOption]:
    """The options of `JobSpec`, without importing it."""
    rows = json.loads(OPTIONS_FILE.read_text(encoding="utf-8"))
    return tuple(
        SpecOption(
            path=tuple(row["path"]),
            option=Option(**row["option"]),
            help=row["help"],
            choices=tuple(row["choices"]),
            kind=row["kind"],
            default=row["default"],
        )
        for row in rows
    )


def spec_options(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[SpecOption]:
    """All options of a model and its submodels, in the order of the fields."""
    from hyperpod_jlab.core.fields import descriptions

    help_texts = descriptions(model)
    for name, field in model.model_fields.items():
        mark = next((entry for entry in field.metadata if isinstance(entry, Option)), None)
        if mark is not None:
            yield _spec_option((*path, name), mark, field, help_texts.get(name, ""))
            continue
        for inner in _models_in(field.annotation):
            yield from spec_options(inner, (*path, name))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _spec_option(path: tuple[str, ...], mark: Option, field: FieldInfo, help_text: str) -> SpecOption:
    choices = tuple(_choices(field.annotation))
    return SpecOption(
        path=path,
        option=mark,
        help=" ".join(help_text.split()),
        choices=choices,
        kind=_kind(field.annotation, bool(choices or mark.metavar)),
        default=None if field.is_required() or field.default_factory else field.default,
    )


def _choices(annotation: Any) -> Iterator[str]:
    for argument in get_args(annotation):
        if isinstance(argument, str):
            yield argument
        else:
            yield from _choices(argument)


def _kind(annotation: Any, is_text: bool) -> Literal["text", "int", "bool"]:
    kinds = {annotation, *get_args(annotation)}
    if bool in kinds:
        return "bool"
    return "int" if int in kinds and not is_text else "text"


def option_name(flag: str) -> str:
    """The option's name in Python and in the magic: ``--time-limit`` is ``time_limit``, ``--yes/--no`` is ``yes``."""
    return flag.split("/", maxsplit=1)[0].removeprefix("--").replace("-", "_")


def to_spec_data(options: Iterable[SpecOption], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Put option values, by name, into the spec's data; also returns the unknown names."""
    path_by_name = {option_name(entry.option.flag): entry.path for entry in options}
    data: dict[str, Any] = {}
    unknown = []
    for name, value in values.items():
        path = path_by_name.get(name)
        if path is None:
            unknown.append(name)
            continue
        inner = data
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = value
    return data, unknown
