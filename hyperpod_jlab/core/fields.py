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
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            properties[name]["description"] = text
        return schema


@functools.cache
def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """The field descriptions of a model, by field name; those of its base models, too."""
    result: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, DescribedModel) and base is not DescribedModel:
            result.update(_own_descriptions(base))
    return result


def _own_descriptions(model: type[BaseModel]) -> dict[str, str]:
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
            raise ValueError(f"'{name[:60]}' is not a name: use up to 80 letters, digits and . / @ % : _ -")
        if len(text) > _MAX_PATTERN:
            raise ValueError(f"the pattern of '{name}' is longer than {_MAX_PATTERN} characters")
        try:
            groups = re.compile(text.encode()).groups
        except (re.error, UnicodeError) as error:
            raise ValueError(f"the pattern of '{name}' is not a regular expression: {error}") from error
        if groups != 1:
            raise ValueError(f"the pattern of '{name}' has {groups} groups; it needs one, around the number")
    return patterns


MetricPatterns = Annotated[dict[str, str], AfterValidator(_check_patterns)]
"""Regular expressions with one group, which is a number, by the number's name."""


NO_MLFLOW = "none"
"""What stands for a tracking server to have none, whatever the configuration says."""

_MLFLOW_URL = re.compile(r"https?://(?:\[[0-9a-fA-F:.]+\]|[^\s/@?#:\[\]]+)(?::(?P<port>[0-9]{1,5}))?(?:/[^\s?#]*)?")
_URL_WITH_PASSWORD = re.compile(r"\s*[a-z][\w+.-]*://[^/]*(?:@|:(?![0-9]+/)\S*@)", re.IGNORECASE)
_MLFLOW_ARN = re.compile(
    r"arn:aws(?:-cn|-us-gov|-iso[a-z-]*)?:sagemaker:[a-z0-9-]+:[0-9]{12}:mlflow-(?:app|tracking-server)/[\w-]+"
)


def is_mlflow_uri(text: str) -> bool:
    """Whether a text names an MLflow tracking server in a way that this package can call: by URL, or by its ARN on SageMaker."""
    url = _MLFLOW_URL.fullmatch(text)
    if url is not None:
        return 0 < int(url["port"] or 80) < 1 << 16
    return bool(_MLFLOW_ARN.fullmatch(text))


def has_password(uri: str) -> bool:
    """Whether a URI, such as `http://user:password@host`, says who is to log in."""
    return bool(_URL_WITH_PASSWORD.match(uri))


def _check_mlflow_uri(text: str) -> str:
    text = re.sub(r"^https?:", lambda scheme: scheme[0].lower(), text.strip(), flags=re.IGNORECASE)
    if has_password(text):
        raise ValueError(
            "a URL with a password is not allowed here; use the secrets MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
    if text != NO_MLFLOW and not is_mlflow_uri(text):
        raise ValueError(
            "must be the URL of an MLflow server, such as http://mlflow:5000, or the ARN of a tracking server or an MLflow App of SageMaker, or none"
        )
    return text


MlflowUri = Annotated[str, Field(max_length=2048), AfterValidator(_check_mlflow_uri)]
"""An MLflow tracking server: a URL, an ARN of SageMaker, or none."""

MlflowName = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""Name of an experiment or a run in MLflow."""
