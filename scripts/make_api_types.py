"""Write src/api/types: the REST API's types for the front end, made from the OpenAPI document.

`--check` writes nothing and exits with 1 when a file is not up to date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperpod_jlab.server.openapi import document

FOLDER = Path(__file__).parents[1] / "src" / "api" / "types"

GROUPS: dict[str, tuple[str, ...]] = {
    "base": ("Error", "RunState"),
    "spec": ("JobSpec",),
    "logs": (
        *("LogPage", "LogHits", "Streams", "PageQuery", "SearchQuery", "RawQuery"),
        *("Subscribe", "Unsubscribe", "Ack", "Subscribed", "Frame", "End", "Failure"),
    ),
    "clusters": (
        "Clusters",
        "Nodes",
        "Queues",
        "Jobs",
        "Choices",
        "TableQuery",
        "JobsQuery",
        "JobResults",
        "JobActionBody",
        "NodeActionBody",
        "NodeActionPreview",
        "NodeResults",
    ),
    "hyperpod": (
        *("HyperpodClusters", "HyperpodClusterAnswer", "HyperpodNodes"),
        *("HyperpodListQuery", "HyperpodTableQuery", "HyperpodQuery"),
        *("HyperpodEvents", "HyperpodEventDetail", "EventsQuery"),
    ),
    "governance": ("HyperpodGovernance",),
    "storage": (
        *("StorageOverview", "StorageQuery", "StorageLinkMade", "StoragePaths", "PathsQuery"),
        "LinkBody",
        *("FilesBody", "FilesActionBody", "StoredFiles", "RepositoryTasks", "TaskState"),
    ),
    "telemetry": (
        *("HyperpodLogs", "HyperpodLogLines", "HyperpodMetrics", "HyperpodNodeMetrics"),
        *("NodeLogsQuery", "NodeLinesQuery", "MetricsQuery", "NodeMetricsQuery"),
        *("HyperpodNodeLogs", "NodeLogPage", "NodeLogHits", "NodePageQuery", "NodeSearchQuery"),
    ),
    "aws": ("AwsCalls", "AwsCallsEvent", "AwsRegions"),
    "lifecycle": ("LifecycleAnswer", "LifecycleLog"),
    "admin": (
        *(
            "AdminRightsAnswer",
            "AdminChoices",
            "AdminMode",
            "AdminModeQuery",
            "AdminWork",
            "AdminSteps",
            "AdminEvent",
        ),
        *("AdminPlanBody", "AdminApplyBody", "StepsQuery"),
    ),
    "doctor": ("DoctorExamination", "DoctorBody", "DoctorReport", "DoctorEvent"),
    "runs": (),
}
"""Which file holds these types and what they need; the last one holds all the rest."""

WIDTH = 80
HEAD = """\
/**
 * Types of the REST API, the log socket and the events (docs/rest-api.md).
 *
 * Made by scripts/make_api_types.py from the OpenAPI document: do not edit.
 */
"""
PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}

Schema = dict[str, Any]


def type_of(schema: Schema) -> list[str]:
    """A schema as the members of a TypeScript union."""
    if "$ref" in schema:
        return [name_of(schema["$ref"].rsplit("/", 1)[1])]
    if "const" in schema:
        return [literal(schema["const"])]
    if "enum" in schema:
        return [literal(value) for value in schema["enum"]]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return list(dict.fromkeys(member for choice in choices for member in type_of(choice)))
    kind = schema.get("type")
    if isinstance(kind, list):
        return [PLAIN[each] for each in kind]
    if kind == "array":
        return [array_of(schema)]
    if kind == "object":
        return [record_of(schema)]
    return [PLAIN[kind]] if kind in PLAIN else ["unknown"]


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + json.dumps(value)[1:-1].replace("'", "\\'") + "'"
    return json.dumps(value)


def array_of(schema: Schema) -> str:
    if "prefixItems" in schema:
        items = ", ".join(" | ".join(type_of(item)) for item in schema["prefixItems"])
        return f"readonly [{items}]"
    members = type_of(schema.get("items", {}))
    item = " | ".join(members)
    # `readonly` binds looser than the brackets of an array of arrays.
    grouped = len(members) > 1 or item.startswith("readonly ")
    return f"readonly ({item})[]" if grouped else f"readonly {item}[]"


def record_of(schema: Schema) -> str:
    more = schema.get("additionalProperties", True)
    names = schema.get("propertyNames", {})
    key = " | ".join(type_of(names)) if "$ref" in names else "string"
    value = " | ".join(type_of(more)) if isinstance(more, dict) else "unknown"
    record = f"Readonly<Record<{key}, {value}>>"
    return record if key == "string" else f"Readonly<Partial<Record<{key}, {value}>>>"


def name_of(component: str) -> str:
    """What a type is called: interfaces begin with an I, as everywhere in the front end."""
    return component if "enum" in SCHEMAS[component] else f"I{component}"


def comment(text: str | None, indent: str = "") -> Iterator[str]:
    if text:
        yield f"{indent}/** {' '.join(text.split())} */"


def declaration(component: str) -> Iterator[str]:
    """A type, in the form that prettier gives it."""
    schema = SCHEMAS[component]
    yield from comment(schema.get("description"))
    if "enum" in schema:
        union = " | ".join(literal(value) for value in schema["enum"])
        if len(f"export type {component} = {union};") <= WIDTH:
            yield f"export type {component} = {union};"
            return
        yield f"export type {component} ="
        yield from (f"  | {literal(value)}" for value in schema["enum"][:-1])
        yield f"  | {literal(schema['enum'][-1])};"
        return
    yield f"export interface I{component} {{"
    required = set(schema.get("required", []))
    for field, inner in schema.get("properties", {}).items():
        yield from comment(inner.get("description"), "  ")
        yield from member_lines(f"  readonly {field}{'' if field in required else '?'}:", inner)
    yield "}"


def member_lines(start: str, schema: Schema) -> Iterator[str]:
    choices = type_of(schema)
    union = " | ".join(choices)
    if len(f"{start} {union};") <= WIDTH:
        yield f"{start} {union};"
    elif len(f"    {union};") <= WIDTH:
        yield start
        yield f"    {union};"
    else:
        yield start
        yield from (f"    | {choice}" for choice in choices[:-1])
        yield f"    | {choices[-1]};"


def needs(component: str) -> set[str]:
    """The types that a type names."""
    text = json.dumps(SCHEMAS[component])
    return {name for name in SCHEMAS if f'/{name}"' in text and name != component}


def grouped() -> dict[str, list[str]]:
    """The types of each file."""
    left = set(SCHEMAS)
    found: dict[str, list[str]] = {}
    for group, roots in GROUPS.items():
        todo = list(roots or left)
        mine: set[str] = set()
        while todo:
            name = todo.pop()
            if name in left:
                left.discard(name)
                mine.add(name)
                todo += needs(name)
        found[group] = sorted(mine)
    return found


def imports(group: str, groups: dict[str, list[str]]) -> Iterator[str]:
    wanted = {need for name in groups[group] for need in needs(name)}
    for other, names in groups.items():
        shared = sorted(name_of(name) for name in wanted.intersection(names))
        if other != group and shared:
            yield f"import {{ {', '.join(shared)} }} from './{other}';"


def render() -> dict[str, str]:
    """The files by name."""
    groups = grouped()
    files = {}
    for group, names in groups.items():
        lines = list(imports(group, groups))
        blocks = ["\n".join(lines)] if lines else []
        blocks += ["\n".join(declaration(name)) for name in names]
        files[f"{group}.ts"] = HEAD + "\n" + "\n\n".join(blocks) + "\n"
    exports = "".join(f"export * from './{group}';\n" for group in sorted(groups))
    files["index.ts"] = HEAD + "\n" + exports
    return files


def main() -> int:
    files = render()
    if "--check" not in sys.argv[1:]:
        FOLDER.mkdir(exist_ok=True)
        for name, text in files.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")}
    stale = sorted(
        name for name in files.keys() | there.keys() if there.get(name) != files.get(name)
    )
    print(
        f"run scripts/make_api_types.py: {', '.join(stale)}" if stale else f"{FOLDER}: up to date"
    )
    return 1 if stale else 0


SCHEMAS: dict[str, Schema] = document()["components"]["schemas"]


if __name__ == "__main__":
    sys.exit(main())
