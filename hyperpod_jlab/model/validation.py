"""Turning pydantic's complaints into errors of ours: the field by name, one sentence, and the nearest valid name for a misspelt one."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint

Model = TypeVar("Model", bound=BaseModel)

_CUT = 60
"""Characters of the user's own words that a message repeats."""


def parse(model: type[Model], data: Mapping[str, Any], *, code: str = "invalid_spec") -> Model:
    """Validate plain data.

    Raises:
        InvalidInputError: With the first problem in words, its field in ``detail.field`` and all of them in ``detail.problems``.
    """
    _check_text(data, (), code)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid(model, error, code=code) from error


def invalid(model: type[BaseModel], error: ValidationError, *, code: str) -> InvalidInputError:
    """The error of ours for one of pydantic's."""
    problems: list[dict[str, str | None]] = []
    for entry in error.errors(include_url=False):
        place, around = _place(model, entry["loc"])
        problems.append(_problem(place, around, entry))
    return _first_of(problems, code)


def _first_of(problems: list[dict[str, str | None]], code: str) -> InvalidInputError:
    first = problems[0]
    return InvalidInputError(
        f"{first['field']}: {first['message']}" if first["field"] else str(first["message"]),
        code=code,
        hint=first["hint"],
        detail={"field": first["field"], "problems": problems},
    )


def _place(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """The field's path without the words that pydantic adds for unions and keys, and the type that its last step lies in."""
    place: list[str] = []
    here: Any = model
    around: Any = model
    for step in loc:
        name = str(step)
        around = here
        here, shown = _inside(here, name)
        if shown:
            place.append(name[:_CUT])
    return place, around


def _inside(annotation: Any, name: str) -> tuple[Any, bool]:
    """The type of a part of a type, and whether the step to it is one that users know (a union's choice is none)."""
    if name == "[key]":
        return None, False
    annotation = _bare(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(name)
        return (field.annotation if field is not None else None), True
    arguments = get_args(annotation)
    if get_origin(annotation) in {Union, UnionType}:
        return next((choice for choice in arguments if _tag(choice) == name), None), False
    return (arguments[-1] if arguments else None), True


def _bare(annotation: Any) -> Any:
    """A type without what is annotated to it, and without None."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bare(arguments[0])
    choices = [choice for choice in arguments if choice is not NoneType]
    if origin in {Union, UnionType} and len(choices) == 1:
        return _bare(choices[0])
    return annotation


def _tag(model: Any) -> str | None:
    for name in ("kind", "orchestrator"):
        field = getattr(model, "model_fields", {}).get(name)
        if field is not None:
            return str(get_args(field.annotation)[0])
    return None


def _problem(place: list[str], around: Any, entry: Any) -> dict[str, str | None]:
    kind, message, context = entry["type"], str(entry["msg"]), entry.get("ctx", {})
    hint = None
    if kind == "extra_forbidden":
        message = f"there is no field '{place[-1]}'"
        hint = nearest_hint(
            str(entry["loc"][-1])[:_CUT], getattr(_bare(around), "model_fields", {})
        )
    elif kind == "union_tag_not_found":
        choices = get_args(_bare(_inside(around, str(entry["loc"][-1]))[0]))
        place = [*place, str(context["discriminator"]).strip("'")]
        message = "is missing"
        hint = "valid: " + ", ".join(sorted(tag for choice in choices if (tag := _tag(choice))))
    elif kind in {"literal_error", "union_tag_invalid"}:
        expected = str(context.get("expected") or context.get("expected_tags", ""))
        words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
        given = str(context.get("tag", entry["input"]))
        message = f"'{given[:_CUT]}' is not valid here"
        hint = nearest_hint(given[:_CUT], filter(None, words))
    elif kind == "missing":
        message = "is missing"
    elif kind == "string_pattern_mismatch":
        message = f"'{str(entry['input'])[:_CUT]}' is not valid here"
        hint = f"it must match {context['pattern']}"
    elif kind == "model_type":
        message = "takes further fields, not one value"
    return {
        "field": ".".join(place),
        "message": message.removeprefix("Value error, "),
        "hint": hint,
    }


def _check_text(data: Any, place: tuple[str, ...], code: str) -> None:
    """Refuse text that no file can hold: half a character, as undecodable bytes of a command line become.

    Raises:
        InvalidInputError: With the field.
    """
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError:
            field = ".".join(place)
            problem = {"field": field, "message": "is no valid Unicode text", "hint": None}
            raise _first_of([problem], code) from None
    elif isinstance(data, Mapping):
        for name, value in data.items():
            _check_text(name, place, code)
            _check_text(value, (*place, str(name)), code)
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            _check_text(value, (*place, str(index)), code)
