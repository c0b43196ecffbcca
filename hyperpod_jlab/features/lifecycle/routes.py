"""Requests about the lifecycle configuration of this space: how far its script has come, and its log."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Literal, cast

from typing_extensions import TypedDict

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.run import iso_time
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.storage.lifecycle_files import read_log, read_status


class LifecycleStep(TypedDict):
    """A step of the script: its name, how far it is, and what it has to say."""

    name: str
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    message: str


class LifecycleAnswer(TypedDict):
    """How far it has come. `none`: none has run here; `stopped`: it has said nothing for too long; `unknown`: `problem` says why its file tells nothing."""

    state: Literal["none", "running", "done", "failed", "stopped", "unknown"]
    app: Literal["jupyterlab", "code-editor"] | None
    started_at: str | None
    updated_at: str | None
    steps: list[LifecycleStep]
    problem: Error | None


class LifecycleLog(TypedDict):
    """The end of its log; with `cut` there is more before it in the file."""

    path: str
    text: str
    cut: bool


async def show_lifecycle(call: Call) -> LifecycleAnswer:  # noqa: ARG001 - every endpoint is given its call
    """How far the lifecycle configuration of this space has come."""
    answer: LifecycleAnswer = {
        "state": "none",
        "app": None,
        "started_at": None,
        "updated_at": None,
        "steps": [],
        "problem": None,
    }
    try:
        status = await asyncio.to_thread(read_status)
    except StorageError as error:
        return {**answer, "state": "unknown", "problem": cast("Error", error.to_dict())}
    if status is None:
        return answer
    return {
        "state": status.state_at(datetime.now(UTC)),
        "app": status.app,
        "started_at": iso_time(status.started.timestamp()),
        "updated_at": iso_time(status.updated.timestamp()),
        "steps": [
            {"name": step.name, "state": step.state, "message": step.message}
            for step in status.steps
        ],
        "problem": None,
    }


async def show_lifecycle_log(call: Call) -> LifecycleLog:  # noqa: ARG001 - every endpoint is given its call
    """The end of its log."""
    found = await asyncio.to_thread(read_log)
    return {"path": str(found.path), "text": found.text, "cut": found.cut}
