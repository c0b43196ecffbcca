"""The REST API as sorted lines of text: one for each answer, body and parameter of a route, and one for each field of a type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

WORDS = {"title", "description", "summary"}
SAID = {*WORDS, "$ref", "anyOf", "oneOf", "const", "enum", "type", "items", "properties"}
SAID |= {"required", "default", "discriminator", "additionalProperties", "x-option"}
"""Keys of a schema that the text of a type has, or the lines of its fields."""


def contract(document: Mapping[str, Any]) -> str:
    """An OpenAPI document without its prose."""
    lines: set[str] = set()
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            lines.update(f"{path} {verb.upper()} {line}" for line in _operation(operation))
    for name, schema in document["components"]["schemas"].items():
        lines.add(f"{name}: {_type(schema)}")
        lines.update(f"{name}{line}" for line in _fields(schema))
    return "\n".join(sorted(lines))


def _operation(operation: Mapping[str, Any]) -> Iterator[str]:
    answers = (f"{status} {_content(one)}" for status, one in operation["responses"].items())
    yield f"({operation['operationId']}, {operation['x-action']}): {', '.join(answers)}"
    for one in operation["parameters"]:
        mark = "" if one["required"] else "?"
        yield f"{one['in']} {one['name']}{mark}: {_type(one['schema'])}"
    if "requestBody" in operation:
        yield f"body: {_content(operation['requestBody'])}"


def _content(part: Mapping[str, Any]) -> str:
    kinds = part.get("content", {}).items()
    texts = (f"{kind} {_type(one.get('schema', {}))}" for kind, one in kinds)
    return " | ".join(texts).replace("application/json ", "")


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an object, those of objects in it too."""
    for name, field in schema.get("properties", {}).items():
        mark = "" if name in schema.get("required", []) else "?"
        yield f".{name}{mark}: {_type(field)}"
        yield from (f".{name}{line}" for line in _fields(field))


def _type(schema: Mapping[str, Any]) -> str:
    choices = [_type(one) for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]
    if "$ref" in schema:
        text = schema["$ref"].rpartition("/")[2]
    elif choices:
        text = " | ".join(choices)
    elif "const" in schema or "enum" in schema:
        text = " | ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    elif schema.get("type") == "array":
        text = f"[{_type(schema.get('items', {}))}]"
    else:
        text = str(schema.get("type", "any"))
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            text += f" of {_type(others)}"
        elif others is False:
            text += ", closed"
    limits = [f" {key}={json.dumps(schema[key])}" for key in sorted(schema.keys() - SAID)]
    default = f" = {json.dumps(schema['default'])}" if "default" in schema else ""
    return text + "".join(limits) + default
