"""``GET openapi.json``: the OpenAPI document, generated from the routes and types that serve the API."""

from __future__ import annotations

import asyncio
import inspect
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import (
    DataclassField,
    DataclassSchema,
    ModelField,
    ModelSchema,
    TypedDictField,
    WithDefaultSchema,
)

import hyperpod_jlab
from hyperpod_jlab.contributions import Route
from hyperpod_jlab.core.errors import Error
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.wire import adapter
from hyperpod_jlab.server import events as admin_events
from hyperpod_jlab.server import events as aws_call_events
from hyperpod_jlab.server import events as doctor_events
from hyperpod_jlab.server.base import API_VERSION
from hyperpod_jlab.server.call import Call, Download
from hyperpod_jlab.server.endpoint import Endpoint, endpoint_of
from hyperpod_jlab.server.log_messages import Ack, End, Failure, Frame, Subscribe, Subscribed, Unsubscribe
from hyperpod_jlab.server.routes import ROUTES, SOCKET_PATH
from hyperpod_jlab.server.run_events import SCHEMA_FILE

_COMPONENTS = "#/components/schemas/"
_REQUESTS = (Subscribe, Unsubscribe, Ack)
_MESSAGES = (Subscribed, Frame, End, Failure)
_STATUS_TEXTS = {200: "Done.", 201: "Made."}
_DESCRIPTION = "Authenticate as with all of Jupyter Server. Every error has the schema Error. docs/rest-api.md describes the log socket; its messages are among the schemas."

_NAMES = {
    "Access": "RunAccess",
    "Association": "StorageLink",
    "Check": "DoctorCheck",
    "StageResult": "DoctorStage",
    "MountGroup": "AdminMountGroup",
    "StorageMounts": "AdminMounts",
    "ClusterEvent": "HyperpodEventDetail",
    "TimeSeries": "HyperpodMetric",
    "AdminRights": "AdminRightsAnswer",
    "DomainChoice": "AdminDomain",
    "EventRow": "HyperpodEvent",
    "FileSystem": "AwsFileSystem",
    "FileSystemChoice": "AdminFileSystem",
    "Finding": "FoundThing",
    "ProvisionerOptions-Input": "AdminFoldersBody",
    "ProvisionerOptions-Output": "AdminFolders",
    "InstanceGroup": "HyperpodGroup",
    "Isolation": "StorageIsolation",
    "LifecycleStepStatus": "LifecycleStep",
    "LogStream": "StreamInfo",
    "Mark": "LogMark",
    "MetricSet": "HyperpodMetrics",
    "Node": "ClusterNode",
    "NodeActionPlan": "NodeActionPreview",
    "NodeLog": "HyperpodLog",
    "NodeLogLine": "HyperpodLogLine",
    "NodePlan": "NodeToActOn",
    "OperationCalls": "AwsOperationCalls",
    "OwnedRun": "Run",
    "Parent": "StorageParent",
    "MountInfo": "StoragePlace",
    "Reach": "HyperpodReach",
    "Resource": "Device",
    "SearchHit": "LogHit",
    "SearchResult": "LogHits",
    "SentFile": "CodeFile",
    "Separation": "StorageSeparation",
    "Setting": "HyperpodSetting",
    "Side": "StorageSide",
    "Effect": "AdminStatement",
    "StepRow": "AdminStep",
}
"""Schema names of classes, where they differ from the class name."""

_ATTRIBUTES = "\n\nAttributes:\n"

_Schemas = dict[Any, dict[str, Any]]


class _Generator(GenerateJsonSchema):
    """In response schemas all fields are required; a docstring's ``Attributes:`` section describes them."""

    def field_is_required(self, field: DataclassField | ModelField | TypedDictField, total: bool) -> bool:
        """Whether a field is always present."""
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return True
        return super().field_is_required(field, total)

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """The schema of a field with a default; omits the default, which clients do not need."""
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dataclass_schema(self, schema: DataclassSchema) -> JsonSchemaValue:
        """The schema of a dataclass."""
        return _describe(schema["cls"], super().dataclass_schema(schema))

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """The schema of a model."""
        return _describe(schema["cls"], super().model_schema(schema))


def _describe(kind: type[Any], schema: JsonSchemaValue) -> JsonSchemaValue:
    """Add the descriptions from the docstrings of a class and its bases, in JSON terms."""
    for base in kind.__mro__:
        text, _, attributes = inspect.cleandoc(base.__doc__ or "").partition(_ATTRIBUTES)
        if base is kind and "description" in schema:
            schema["description"] = _to_json_words(text)
        for line in re.sub(r"\n {5,}", " ", attributes).splitlines():
            name, _, description = line.strip().partition(": ")
            if name in schema.get("properties", {}):
                schema["properties"][name].setdefault("description", _to_json_words(description))
    return schema


def _to_json_words(text: str) -> str:
    return re.sub(r"(?<!`)\bNone\b", "null", text.replace(" (Unix seconds)", "").replace("``", "`"))


async def show_openapi(call: Call) -> dict[str, Any]:  # noqa: ARG001 - every endpoint is given its call
    """Get this document."""
    return await asyncio.to_thread(document)


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    described = describe_api()
    info = {**described["info"], "x-package-version": hyperpod_jlab.__version__}
    return {**described, "info": info}


def describe_api() -> dict[str, Any]:
    """The OpenAPI document without the package's version, which only an installed package has."""
    schemas, components = _rename_schemas(_schemas())
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        operation = _operation(route, schemas, components)
        paths.setdefault(f"/{route.path}", {})[route.verb] = operation
    paths[f"/{SOCKET_PATH}"] = {"get": _socket_operation()}
    components["RunEvent"] = _run_event_schema()
    components["AwsCallsEvent"] = _event_schema(aws_call_events.AWS_CALLS_SCHEMA_FILE)
    components["DoctorEvent"] = _event_schema(doctor_events.DOCTOR_SCHEMA_FILE)
    components["AdminEvent"] = _event_schema(admin_events.ADMIN_SCHEMA_FILE)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hyperpod_jlab", "version": f"{API_VERSION}.0.0", "description": _DESCRIPTION},
        "servers": [{"url": "."}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`token TOKEN`; a browser's cookie does as well.",
                }
            },
        },
    }


def _rename_schemas(generated: tuple[_Schemas, dict[str, Any]]) -> tuple[_Schemas, dict[str, Any]]:
    schemas, components = generated
    for name, schema_name in _NAMES.items():
        assert schema_name not in components, f"two schemas are called {schema_name}"
        components[schema_name] = {**components.pop(name), "title": schema_name}
    references = {_COMPONENTS + name: _COMPONENTS + schema_name for name, schema_name in _NAMES.items()}

    def renamed(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: renamed(value) for key, value in node.items()}
        if isinstance(node, list):
            return [renamed(value) for value in node]
        return references.get(node, node) if isinstance(node, str) else node

    return {key: renamed(schema) for key, schema in schemas.items()}, renamed(components)


def _mode(part: str, kind: Any) -> JsonSchemaMode:
    """Whether a schema describes input or output. A spec is both, and the same."""
    return "serialization" if part == "answer" and kind is not JobSpec else "validation"


def _schemas() -> tuple[_Schemas, dict[str, Any]]:
    """The schema of each type by route and part, and the named types."""
    types: list[tuple[Any, JsonSchemaMode, Any]] = [("error", "serialization", Error)]
    types += [(kind.__name__, "validation", kind) for kind in _REQUESTS]
    types += [(kind.__name__, "serialization", kind) for kind in _MESSAGES]
    for route in ROUTES:
        endpoint = endpoint_of(route)
        parts = {"query": endpoint.query, "body": endpoint.body, "answer": endpoint.answer}
        types += [
            ((route, part), _mode(part, kind), kind)
            for part, kind in parts.items()
            if kind is not None and kind is not Download
        ]
    generated, rest = TypeAdapter.json_schemas(
        [(key, mode, adapter(kind)) for key, mode, kind in types],
        ref_template=_COMPONENTS + "{model}",
        schema_generator=_Generator,
    )
    schemas: _Schemas = {key: dict(schema) for (key, _), schema in generated.items()}
    return schemas, dict(rest.get("$defs", {}))


def _operation(route: Route, schemas: _Schemas, components: dict[str, Any]) -> dict[str, Any]:
    endpoint = endpoint_of(route)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in route.parameters
    ]
    if endpoint.query is not None:
        schema = _resolve(schemas[route, "query"], components)
        parameters += _query_parameters(endpoint.query, schema)
    operation: dict[str, Any] = {
        "operationId": endpoint.function.__name__,
        "summary": inspect.cleandoc(endpoint.function.__doc__ or "").split("\n\n")[0],
        "x-action": route.action,
        "parameters": parameters,
        "responses": _responses(route, endpoint, schemas),
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": schemas[route, "body"]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _query_parameters(model: type[BaseModel], schema: dict[str, Any]) -> list[dict[str, Any]]:
    parameters = []
    for name in model.model_fields:
        parameter_schema = dict(schema["properties"][name])
        description = parameter_schema.pop("description", None)
        parameter_schema.pop("title", None)
        # A body omits a value with null; a query omits the parameter.
        choices = [choice for choice in parameter_schema.get("anyOf", []) if choice != {"type": "null"}]
        if "anyOf" in parameter_schema:
            del parameter_schema["anyOf"]
            parameter_schema.update(choices[0] if len(choices) == 1 else {"anyOf": choices})
        if parameter_schema.get("default", "") is None:
            del parameter_schema["default"]
        parameter = {"name": name, "in": "query", "required": False, "schema": parameter_schema}
        if description:
            parameter["description"] = description
        parameters.append(parameter)
    return parameters


def _responses(route: Route, endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    if endpoint.answer is Download:
        content: dict[str, Any] = {"application/octet-stream": {}}
    else:
        content = {"application/json": {"schema": schemas[route, "answer"]}}
    responses: dict[str, Any] = {
        str(status): {"description": _STATUS_TEXTS[status], "content": content} for status in route.statuses
    }
    responses["default"] = _error_response()
    return responses


def _error_response() -> dict[str, Any]:
    schema = {"$ref": f"{_COMPONENTS}{Error.__name__}"}
    return {"description": "An error.", "content": {"application/json": {"schema": schema}}}


def _socket_operation() -> dict[str, Any]:
    return {
        "operationId": "log_socket",
        "summary": "The log socket: a WebSocket, see docs/rest-api.md.",
        "x-action": "read",
        "parameters": [],
        "responses": {"101": {"description": "The socket opens."}, "default": _error_response()},
    }


def _run_event_schema() -> dict[str, Any]:
    schema = _event_schema(SCHEMA_FILE)
    schema["properties"]["state"] = {"$ref": f"{_COMPONENTS}RunState"}
    return schema


def _event_schema(file: Path) -> dict[str, Any]:
    """The schema of an event on Jupyter's event bus."""
    schema: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: schema[name] for name in ("description", "type", "required", "properties")}


def _resolve(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    target: dict[str, Any] = components[schema["$ref"].removeprefix(_COMPONENTS)]
    return target
