"""Parses queries and bodies into models; errors name the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import from_json

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.quantities import format_size
from hyperpod_jlab.core.validation import parse

Model = TypeVar("Model", bound=BaseModel)
Body = TypeVar("Body", bound="RequestModel")

_FOREIGN_PARAMETERS = re.compile(r"token|_xsrf|no_track_activity|_|\d+")
"""Parameters that Jupyter's own clients add: the token, a cache buster, and the like."""


_MAX_BYTES = 4 << 20


class RequestModel(BaseModel):
    """Base of queries and bodies: an unknown field is an error.

    Attributes:
        max_bytes: Maximum size of a body. A parser holds the interpreter's lock, and all of Jupyter waits for it.
    """

    max_bytes: ClassVar[int] = _MAX_BYTES

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class NoQuery(RequestModel):
    """The query of a request without parameters."""


def _split(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    return [part for item in value for part in (item.split(",") if isinstance(item, str) and "," in item else [item])]


CommaSeparated = BeforeValidator(_split)
"""On a list in a query: the parameter may be repeated, or have values separated by commas."""


def read_query(model: type[Model] | None, arguments: Mapping[str, list[bytes]]) -> BaseModel:
    """Parse the query of a request.

    Raises:
        InvalidInputError: A parameter is unknown or invalid; the detail names it.
    """
    query_model: type[BaseModel] = model or NoQuery
    data: dict[str, Any] = {}
    for name, values in arguments.items():
        if name not in query_model.model_fields and _FOREIGN_PARAMETERS.fullmatch(name):
            continue
        try:
            texts = [value.decode() for value in values]
        except UnicodeDecodeError as error:
            raise _invalid(name, "is not UTF-8") from error
        field = query_model.model_fields.get(name)
        if field is not None and _is_list(field.annotation):
            data[name] = texts
        elif len(texts) > 1:
            raise _invalid(name, "is given more than once")
        else:
            data[name] = texts[0]
    return parse(query_model, data, code="invalid_input")


def read_body(model: type[Body], body: bytes) -> Body:
    """Parse the body of a request.

    Raises:
        InvalidInputError: It is not a JSON object, or a field is unknown or invalid; the detail names it.
    """
    return parse(model, read_object(body, model.max_bytes), code="invalid_input")


def read_object(text: str | bytes, max_bytes: int = _MAX_BYTES) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        InvalidInputError: It is not a JSON object, or too large.
    """
    if len(text) > max_bytes:
        raise InvalidInputError(
            f"the body is larger than {format_size(max_bytes)}", code="body_too_large", detail={"field": ""}
        )
    try:
        data = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"the body is not valid JSON: {error}", code="invalid_json", detail={"field": ""}
        ) from error
    if not isinstance(data, dict):
        raise InvalidInputError("the body must be a JSON object", code="invalid_json", detail={"field": ""})
    return data


def _is_list(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_list(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return any(_is_list(choice) for choice in get_args(annotation))
    return get_origin(annotation) in {list, tuple}


def _invalid(name: str, expected: str) -> InvalidInputError:
    return InvalidInputError(f"{name[:60]}: {expected}", detail={"field": name[:60]})
