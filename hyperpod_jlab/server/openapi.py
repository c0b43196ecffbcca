"""``GET openapi.json``: the REST API in words for machines, made from the very routes and types that serve it."""

from __future__ import annotations

import asyncio
import inspect
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, TypeAdapter

import hyperpod_jlab
from hyperpod_jlab.contributions import Route
from hyperpod_jlab.server import events as admin_events
from hyperpod_jlab.server import events as aws_call_events
from hyperpod_jlab.server import events as doctor_events
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.base import API_VERSION
from hyperpod_jlab.server.call import Call, Download
from hyperpod_jlab.server.endpoint import Endpoint, endpoint_of
from hyperpod_jlab.server.log_messages import (
    Ack,
    End,
    Failure,
    Frame,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from hyperpod_jlab.server.routes import ROUTES, SOCKET_PATH
from hyperpod_jlab.server.run_events import SCHEMA_FILE

_COMPONENTS = "#/components/schemas/"
_SOCKET_MESSAGES = (Subscribe, Unsubscribe, Ack, Subscribed, Frame, End, Failure)
_STATUS_WORDS = {200: "Done.", 201: "Made."}
_ABOUT = (
    "Authenticate as with all of Jupyter Server. Every error has the shape of Error. "
    "The log socket and its messages are described in docs/rest-api.md; its messages stand among the schemas."
)

_Schemas = dict[Any, dict[str, Any]]


async def show_openapi(call: Call) -> dict[str, Any]:  # noqa: ARG001 - every endpoint is given its call
    """This document."""
    return await asyncio.to_thread(document)


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    schemas, components = _schemas()
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
        "info": {
            "title": "hyperpod_jlab",
            "version": f"{API_VERSION}.0.0",
            "description": _ABOUT,
            "x-package-version": hyperpod_jlab.__version__,
        },
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


def _schemas() -> tuple[_Schemas, dict[str, Any]]:
    """The schema of each type by route and part, and the types that have names."""
    wanted: list[tuple[Any, Any]] = [("error", Error)]
    wanted += [(kind.__name__, kind) for kind in _SOCKET_MESSAGES]
    for route in ROUTES:
        endpoint = endpoint_of(route)
        parts = {"query": endpoint.query, "body": endpoint.body, "answer": endpoint.answer}
        wanted += [
            ((route, part), kind)
            for part, kind in parts.items()
            if kind is not None and kind is not Download
        ]
    found, rest = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(kind)) for key, kind in wanted],
        ref_template=_COMPONENTS + "{model}",
    )
    schemas: _Schemas = {key: dict(schema) for (key, _), schema in found.items()}
    return schemas, dict(rest.get("$defs", {}))


def _operation(route: Route, schemas: _Schemas, components: dict[str, Any]) -> dict[str, Any]:
    endpoint = endpoint_of(route)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.parameters
    ]
    if endpoint.query is not None:
        schema = _resolved(schemas[route, "query"], components)
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
        shown = dict(schema["properties"][name])
        description = shown.pop("description", None)
        shown.pop("title", None)
        # null is how a body leaves something out; a query does so by not having it.
        choices = [choice for choice in shown.get("anyOf", []) if choice != {"type": "null"}]
        if "anyOf" in shown:
            del shown["anyOf"]
            shown.update(choices[0] if len(choices) == 1 else {"anyOf": choices})
        if shown.get("default", "") is None:
            del shown["default"]
        parameter = {"name": name, "in": "query", "required": False, "schema": shown}
        if description:
            parameter["description"] = description
        parameters.append(parameter)
    return parameters


def _responses(route: Route, endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    if endpoint.answer is Download:
        content: dict[str, Any] = {"application/octet-stream": {}}
    else:
        content = {"application/json": {"schema": schemas[route, "answer"]}}
    found: dict[str, Any] = {
        str(status): {"description": _STATUS_WORDS[status], "content": content}
        for status in route.statuses
    }
    found["default"] = _error_response()
    return found


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
    """What stands on Jupyter's event bus."""
    schema: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: schema[name] for name in ("description", "type", "required", "properties")}


def _resolved(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = components[schema["$ref"].removeprefix(_COMPONENTS)]
    return found
