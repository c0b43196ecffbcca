"""``GET schema``: the spec's JSON Schema, from which the submit form is made."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.server.call import Call


async def show_schema(call: Call) -> dict[str, Any]:  # noqa: ARG001 - every endpoint is given its call
    """JSON Schema of the spec; `x-basic` marks the fields that a form shows first."""
    return await asyncio.to_thread(spec_schema)


@lru_cache(maxsize=1)
def spec_schema() -> dict[str, Any]:
    """The spec's schema with our marks."""
    schema = JobSpec.model_json_schema()
    _mark(schema)
    return schema


def _mark(node: Any) -> None:
    if isinstance(node, dict):
        option = node.get("x-option")
        if isinstance(option, dict) and option.get("basic"):
            node["x-basic"] = True
        for value in node.values():
            _mark(value)
    elif isinstance(node, list):
        for value in node:
            _mark(value)
