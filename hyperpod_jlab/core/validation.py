"""Convert pydantic's errors to ours: the field by name, one sentence, and the closest valid name for a misspelt one."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint

Model = TypeVar("Model", bound=BaseModel)

NAME = r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,62}$"
"""The pattern of a run's name."""

LABEL = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
"""The pattern of names that are passed to other programs' options."""

DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""The pattern of names in Kubernetes."""

DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
"""The pattern of names of most objects in Kubernetes."""

DOMAIN_ID = r"^d-(-*[a-z0-9]){1,61}$"
"""The pattern of Studio domain ids (SageMaker's model of ``DomainId``)."""

FILE_SYSTEM_ID = r"^fs-[0-9a-f]{8,40}$"
"""The pattern of FSx file system ids."""

REGION = r"^[a-z][a-z0-9-]{0,38}[a-z0-9]$"
"""The pattern of AWS regions."""

CURRENCY = r"^[A-Z]{3}$"
"""The pattern of currencies (ISO 4217)."""

_MAX_VALUE_LENGTH = 60
"""Maximum characters of the user's input that a message repeats."""


_MAX_NUMBER_SHOWN = 10**15

_MAX_VALUES = 20_000
"""Maximum number of values in a document."""

_MAX_PROBLEMS = 100
"""Maximum number of problems in an error."""

_ANY_TABLE = (dict[str, Any], dict[str, Any] | None)

_INTEGER = ("must be a whole number, not {given}", "write a whole number, such as 2")
_NUMBER = ("must be a number, not {given}", "write a number, such as 0.5")
_BOOLEAN = ("must be true or false, not {given}", "valid: false, true")
_TEXT = ("must be text, not {given}", "put it in quotes")
_LIST = ("must be a list, not {given}", 'write a list, such as ["a", "b"]')
_TABLE = ("must be names with values, not {given}", 'write names with values, such as {{"NAME": "value"}}')

_DATE = ("must be a date such as 2026-11-01, not {given}", None)

_MESSAGES: Mapping[str, tuple[str, str | None]] = {
    "conda": ("conda environments are not sent any more", "use --env-from venv, or --image"),
    "int_parsing": _INTEGER,
    "int_parsing_size": _INTEGER,
    "int_from_float": _INTEGER,
    "int_type": _INTEGER,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": ("must be a finite number, not {given}", None),
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": _DATE,
    "string_type": _TEXT,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _TABLE,
    "mapping_type": _TABLE,
    "model_type": ("must be an object with fields, not one value", None),
    "model_attributes_type": ("must be an object with fields, not one value", None),
    "missing": ("is missing", None),
    "greater_than_equal": ("must be at least {ge}, not {given}", None),
    "greater_than": ("must be greater than {gt}, not {given}", None),
    "less_than_equal": ("must be at most {le}, not {given}", None),
    "less_than": ("must be less than {lt}, not {given}", None),
    "string_too_short": ("must have at least {min_length} characters", None),
    "string_too_long": ("must have at most {max_length} characters", None),
    "too_short": ("must have at least {min_length} entries", None),
    "too_long": ("must have at most {max_length} entries, not {actual_length}", None),
    "string_pattern_mismatch": ("{given} is not valid here", "it must match {pattern}"),
}
"""Our messages for pydantic's error types, with a hint; placeholders are filled from the error's context and the given value."""

_PATTERN_NAMES: Mapping[str, str] = {
    NAME: "must have at most 63 letters A-Z, digits, spaces and . _ -, and start with a letter or digit",
    LABEL: "must have at most 63 letters A-Z, digits and . _ -, and start with a letter or digit",
    DNS_LABEL: "must have at most 63 lower-case letters, digits and -, and start and end with a letter or digit",
    CURRENCY: "must be three capital letters such as USD",
    DNS_SUBDOMAIN: "must have at most 253 lower-case letters, digits, - and ., and start and end with a letter or digit",
}
"""Descriptions of patterns."""


def parse(model: type[Model], data: Mapping[str, Any], *, code: str = "invalid_spec") -> Model:
    """Validate plain data.

    Raises:
        InvalidInputError: With the first problem, its field in ``detail.field`` and up to 100 of them in ``detail.problems``.
    """
    if has_too_many_values(model, data):
        message = f"more than {_MAX_VALUES} values are not allowed here"
        raise _to_error([{"field": "", "message": message, "hint": None}], code)
    _check_text(data, (), code)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid(model, error, code=code) from error


def invalid(model: type[Any], error: ValidationError, *, code: str) -> InvalidInputError:
    """Convert pydantic's error for a model or a dataclass."""
    problems: list[dict[str, str | None]] = []
    for entry in error.errors(include_url=False)[:_MAX_PROBLEMS]:
        location, parent_type = _location(model, entry["loc"])
        problems.append(_problem(location, parent_type, entry))
    return _to_error(problems, code)


def _to_error(problems: list[dict[str, str | None]], code: str) -> InvalidInputError:
    first = problems[0]
    return InvalidInputError(
        f"{first['field']}: {first['message']}" if first["field"] else str(first["message"]),
        code=code,
        hint=first["hint"],
        detail={"field": first["field"], "problems": problems},
    )


def _location(model: type[Any], loc: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """The field's path without pydantic's entries for unions and keys, and the type that contains its last step."""
    location: list[str] = []
    annotation: Any = model
    parent_type: Any = model
    for step in loc:
        name = str(step)
        parent_type = annotation
        annotation, is_visible = _step_into(annotation, name)
        if is_visible:
            location.append(name[:_MAX_VALUE_LENGTH])
    return location, parent_type


def _step_into(annotation: Any, name: str) -> tuple[Any, bool]:
    """The type of a part of a type, and whether the step is visible to users (the choice in a union is not)."""
    if name == "[key]":
        return None, False
    annotation = _unwrap(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(name)
        return (field.annotation if field is not None else None), True
    arguments = get_args(annotation)
    if get_origin(annotation) in {Union, UnionType}:
        return next((choice for choice in arguments if _tag(choice) == name), None), False
    return (arguments[-1] if arguments else None), True


def _unwrap(annotation: Any) -> Any:
    """A type without annotations and without None."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _unwrap(arguments[0])
    choices = [choice for choice in arguments if choice is not NoneType]
    if origin in {Union, UnionType} and len(choices) == 1:
        return _unwrap(choices[0])
    return annotation


def _tag(model: Any) -> str | None:
    for name in ("kind", "orchestrator"):
        field = getattr(model, "model_fields", {}).get(name)
        if field is not None:
            return str(get_args(field.annotation)[0])
    return None


def _problem(location: list[str], parent_type: Any, entry: Any) -> dict[str, str | None]:
    kind, context = entry["type"], entry.get("ctx", {})
    message, hint = _message_for(entry)
    if kind == "extra_forbidden":
        message = f"unknown field '{location[-1]}'"
        hint = nearest_hint(
            str(entry["loc"][-1])[:_MAX_VALUE_LENGTH], getattr(_unwrap(parent_type), "model_fields", {})
        )
    elif kind == "union_tag_not_found":
        choices = get_args(_unwrap(_step_into(parent_type, str(entry["loc"][-1]))[0]))
        location = [*location, str(context["discriminator"]).strip("'")]
        message = "is missing"
        hint = "valid: " + ", ".join(sorted(tag for choice in choices if (tag := _tag(choice))))
    elif kind in {"literal_error", "union_tag_invalid"}:
        expected = str(context.get("expected") or context.get("expected_tags", ""))
        words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
        value = str(context.get("tag", entry["input"]))
        message = f"'{value[:_MAX_VALUE_LENGTH]}' is not valid here"
        hint = nearest_hint(value[:_MAX_VALUE_LENGTH], filter(None, words))
    return {"field": ".".join(location), "message": message, "hint": hint}


def _message_for(entry: Any) -> tuple[str, str | None]:
    """The message for an invalid value, and the hint; pydantic's own message if the table has none."""
    kind, context = entry["type"], entry.get("ctx", {})
    if kind not in _MESSAGES:
        return str(entry["msg"]).removeprefix("Value error, "), None
    message, hint = _MESSAGES[kind]
    if kind == "string_too_short" and context["min_length"] == 1:
        return "must not be empty", hint
    value = _format_value(entry["input"])
    if kind == "string_pattern_mismatch" and context["pattern"] in _PATTERN_NAMES:
        return f"{_PATTERN_NAMES[context['pattern']]}, not {value}", None
    if kind.startswith(("greater_than", "less_than")):
        value = value.strip("'")
    context_values = {**context, "given": value}
    return message.format_map(context_values), hint.format_map(context_values) if hint else None


def _format_value(value: Any) -> str:
    """A value, formatted for a message."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value) if abs(value) < _MAX_NUMBER_SHOWN else "so large a number"
    if isinstance(value, float):
        return str(value)
    if isinstance(value, str):
        return f"'{value[:_MAX_VALUE_LENGTH]}'"
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, (list, tuple, set)) else f"a {type(value).__name__[:_MAX_VALUE_LENGTH]}"


def has_too_many_values(model: type[BaseModel], data: Mapping[str, Any]) -> bool:
    """Whether a document has very many values: pydantic describes each invalid one, and holds the interpreter's lock meanwhile.

    Fields that take any table, such as a notebook, are not counted: their values are not validated.
    """
    fields = model.model_fields
    values = [value for name, value in data.items() if name not in fields or fields[name].annotation not in _ANY_TABLE]
    count = len(data)
    while values and count <= _MAX_VALUES:
        value = values.pop()
        parts = value.values() if isinstance(value, Mapping) else value
        if isinstance(value, (Mapping, list, tuple)):
            count += len(value)
            if count <= _MAX_VALUES:
                values.extend(parts)
    return count > _MAX_VALUES


def _check_text(data: Any, location: tuple[str, ...], code: str) -> None:
    """Refuse text that cannot be encoded: surrogates, which undecodable bytes of a command line become.

    Raises:
        InvalidInputError: With the field.
    """
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError:
            field = ".".join(location)
            problem = {"field": field, "message": "is not valid Unicode text", "hint": None}
            raise _to_error([problem], code) from None
    elif isinstance(data, Mapping):
        for name, value in data.items():
            _check_text(name, location, code)
            _check_text(value, (*location, str(name)), code)
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            _check_text(value, (*location, str(index)), code)
