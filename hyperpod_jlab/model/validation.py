"""Turning pydantic's complaints into errors of ours: the field by name, one sentence, and the nearest valid name for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint

Model = TypeVar("Model", bound=BaseModel)


def parse(model: type[Model], data: Mapping[str, Any], *, code: str = "invalid_spec") -> Model:
    """Validate plain data.

    Raises:
        InvalidInputError: With the first problem in words, its field in ``detail.field`` and all of them in ``detail.problems``.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid(model, error, code=code) from error


def invalid(model: type[BaseModel], error: ValidationError, *, code: str) -> InvalidInputError:
    """The error of ours for one of pydantic's."""
    problems: list[dict[str, str | None]] = []
    for entry in error.errors(include_url=False):
        place = _place(model, entry["loc"])
        problems.append({"field": ".".join(place), **_words(model, place, entry)})
    first = problems[0]
    return InvalidInputError(
        f"{first['field']}: {first['message']}" if first["field"] else str(first["message"]),
        code=code,
        hint=first["hint"],
        detail={"field": first["field"], "problems": problems},
    )


def _place(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The field's path without the words that pydantic adds for unions, such as a discriminator's value."""
    place: list[str] = []
    models = [model]
    for step in loc:
        name = str(step)
        if any(name in known.model_fields for known in models):
            annotations = [
                known.model_fields[name].annotation
                for known in models
                if name in known.model_fields
            ]
            models = [inner for annotation in annotations for inner in _models_in(annotation)]
            place.append(name)
            continue
        tagged = [known for known in models if _tag(known) == name]
        if tagged:
            models = tagged
        else:
            place.append(name)
    return place


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _tag(model: type[BaseModel]) -> str | None:
    for name in ("kind", "orchestrator"):
        field = model.model_fields.get(name)
        if field is not None:
            values = get_args(field.annotation)
            return str(values[0]) if values else None
    return None


def _words(model: type[BaseModel], place: list[str], entry: Any) -> dict[str, str | None]:
    kind, message = entry["type"], str(entry["msg"])
    if kind == "extra_forbidden":
        names = _names_at(model, place[:-1])
        return {
            "message": f"there is no field '{place[-1]}'",
            "hint": nearest_hint(place[-1], names),
        }
    if kind in {"literal_error", "union_tag_invalid"}:
        expected = str(
            entry.get("ctx", {}).get("expected") or entry["ctx"].get("expected_tags", "")
        )
        words = [
            word.strip(" '") for word in expected.replace(" or ", ",").split(",") if word.strip()
        ]
        given = entry["input"]
        if isinstance(given, dict):
            given = entry["ctx"].get("tag", "")
        return {
            "message": f"'{str(given)[:60]}' is not valid here",
            "hint": nearest_hint(str(given), words),
        }
    if kind == "missing":
        return {"message": "is missing", "hint": None}
    if kind == "string_pattern_mismatch":
        return {
            "message": f"'{str(entry['input'])[:60]}' is not valid here",
            "hint": f"it must match {entry['ctx']['pattern']}",
        }
    return {"message": message.removeprefix("Value error, "), "hint": None}


def _names_at(model: type[BaseModel], place: list[str]) -> list[str]:
    models = [model]
    for name in place:
        annotations = [
            known.model_fields[name].annotation for known in models if name in known.model_fields
        ]
        models = [inner for annotation in annotations for inner in _models_in(annotation)] or models
    return sorted({name for known in models for name in known.model_fields})
