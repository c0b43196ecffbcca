"""A spec with every field set, made from the schema of `JobSpec`, so that a field is in it from the day it is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.core.spec import JobSpec

KINDS = ("notebook", "script", "function", "command", "native")

_OWN_FORM: dict[str, Any] = {
    "name": "bait",
    "source.cells": "1",
    "source.cell_ids": ["first"],
    "resources.memory": "1M",
    "resources.nodes": 2,
    "resources.gpus_per_node": 2,
    "resources.accelerators": {"kind": "gpu", "type": "h100", "count": 2},
    "time_limit": "1h",
    "stop_grace": "7",
    "array": "0-1",
    "max_restarts": 1,
    "alarms.stop_on": ["nan"],
    "kubernetes.namespace": "bait",
    "kubernetes.service_account": "bait",
}
"""Values of fields whose form a program's path does not have."""


def bait_spec(kind: str, capture: str, place: Callable[[str], str], *, address: str, after: str) -> dict[str, Any]:
    """A spec whose every field is set; each text that may be anything is the path of a program.

    Args:
        kind: The kind of its source.
        capture: Where the packages are captured from.
        place: Makes the program for a field and returns its path.
        address: The URL of a server that counts who connects.
        after: A run of the same user.
    """
    own_form = {
        **_OWN_FORM,
        "environment.capture": capture,
        "alarms.webhook": f"{address}/webhook",
        "mlflow.tracking_uri": f"{address}/mlflow",
        "after": [after],
        "metric_patterns": {"x": r"x=(\d)"},
    }
    made = _Maker(kind, place, own_form).spec()
    checked = JobSpec.model_validate(made).model_dump(mode="json")
    plain = JobSpec.model_validate({"source": {"kind": "command", "command": "true"}})
    missing = list(_unset(checked, plain.model_dump(mode="json")))
    assert not missing, f"the bait does not set {missing}: give them a value here"
    return made


@dataclass(frozen=True)
class _Maker:
    """Makes a value for each node of the schema."""

    kind: str
    place: Callable[[str], str]
    own_form: Mapping[str, Any]
    schema: Mapping[str, Any] = field(default_factory=JobSpec.model_json_schema)

    def spec(self) -> dict[str, Any]:
        return self._object(self.schema, "")

    def _value(self, node: Mapping[str, Any], path: str) -> Any:
        if path in self.own_form:
            return self.own_form[path]
        if "$ref" in node:
            return self._value(self.schema["$defs"][node["$ref"].rpartition("/")[2]], path)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return node["enum"][-1]
        options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        return self._choice(options, path) if options else self._typed(node, path)

    def _choice(self, options: Sequence[Mapping[str, Any]], path: str) -> Any:
        values = [self._value(one, path) for one in options if one.get("type") != "null"]
        return next(one for one in values if path != "source" or one["kind"] == self.kind)

    def _typed(self, node: Mapping[str, Any], path: str) -> Any:
        match node["type"]:
            case "object":
                return self._object(node, path)
            case "array":
                return [self._value(node["items"], path)]
            case "boolean":
                return not node.get("default", False)
            case "integer":
                return max(node.get("minimum", 1), 1)
            case _:
                return self.place(path)

    def _object(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "properties" not in node:
            return {"BAIT": self.place(path)}
        return {name: self._value(inner, f"{path}.{name}".lstrip(".")) for name, inner in node["properties"].items()}


def _unset(data: Mapping[str, Any], plain: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The fields that have their default, or nothing."""
    for name, value in data.items():
        here = f"{path}{name}"
        if here == "format" or path == "source.":
            continue
        if isinstance(value, dict) and not (set(value) == {"BAIT"} or here == "metric_patterns"):
            yield from _unset(value, plain.get(name) or {}, f"{here}.")
        elif value in (None, {}, [], "") or (name in plain and value == plain[name]):
            yield here
