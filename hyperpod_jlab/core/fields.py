"""Models whose field descriptions are the strings below the fields.

Pydantic's own ``use_attribute_docstrings`` reads the source when a class is created, which adds 30 ms to every command. This module reads the
source when a description or the JSON schema is requested.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from hyperpod_jlab.core.quantities import MAX_SECONDS, parse_array, parse_duration, parse_size

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


class DescribedModel(BaseModel):
    """A part of the spec or of the configuration. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            properties[name]["description"] = text
        return schema


@functools.cache
def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The field descriptions of a model, by field name."""
    (node,) = (
        node
        for node in _tree(model.__module__).body
        if isinstance(node, ast.ClassDef) and node.name == model.__qualname__
    )
    result = {}
    for field, docstring in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(docstring, ast.Expr)
            and isinstance(docstring.value, ast.Constant)
            and isinstance(docstring.value.value, str)
        ):
            result[field.target.id] = inspect.cleandoc(docstring.value.value)
    return result


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


# --------------------------------------------------------------------------------------------------
# Field types that are parsed from text: durations, sizes, arrays. Separate from their parsers,
# which do not need pydantic.


def _text_parser(parse: Any) -> Any:
    def validate(value: Any) -> Any:
        return parse(value) if isinstance(value, str) else value

    return validate


def _reject_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "must be a whole number")
    return value


NOT_BOOL = BeforeValidator(_reject_bool)
"""For integers: rejects True, which Python treats as 1."""


def _json_schema(description: str, examples: list[str]) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}],
            "description": description,
            "examples": examples,
        }
    )


Duration = Annotated[
    int,
    Field(strict=True, gt=0, le=MAX_SECONDS),
    BeforeValidator(_text_parser(parse_duration)),
    _json_schema("seconds, or text such as 30m, 2h, 1-00:00:00", ["30m", "2h"]),
]
"""A duration in whole seconds; text is parsed by `parse_duration`."""

Size = Annotated[
    int,
    Field(strict=True, gt=0, le=1024**6),
    BeforeValidator(_text_parser(parse_size)),
    _json_schema("bytes, or text such as 512M, 16G", ["16G"]),
]
"""A size in bytes; text is parsed by `parse_size`."""


def _check_array(text: str) -> str:
    parse_array(text)
    return text


ArrayText = Annotated[str, AfterValidator(_check_array)]
"""An array as text that `parse_array` accepts."""

_MAX_PATTERNS = 50
_MAX_PATTERN = 500
_METRIC_NAME = re.compile(r"[\w./@%:-]{1,80}")


def _check_patterns(patterns: dict[str, str]) -> dict[str, str]:
    if len(patterns) > _MAX_PATTERNS:
        raise ValueError(f"at most {_MAX_PATTERNS} patterns are allowed")
    for name, text in patterns.items():
        if not _METRIC_NAME.fullmatch(name):
            raise ValueError(
                f"'{name[:60]}' is not a name: use up to 80 letters, digits and . / @ % : _ -"
            )
        if len(text) > _MAX_PATTERN:
            raise ValueError(f"the pattern of '{name}' is longer than {_MAX_PATTERN} characters")
        try:
            groups = re.compile(text.encode()).groups
        except (re.error, UnicodeError) as error:
            raise ValueError(
                f"the pattern of '{name}' is not a regular expression: {error}"
            ) from error
        if groups != 1:
            raise ValueError(
                f"the pattern of '{name}' has {groups} groups; it needs one, around the number"
            )
    return patterns


MetricPatterns = Annotated[dict[str, str], AfterValidator(_check_patterns)]
"""Regular expressions with one group, which is a number, by the number's name."""
