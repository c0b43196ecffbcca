"""Requests about the lifecycle configuration of this space: how far its script has come, and its log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError, StorageError
from hyperpod_jlab.core.studio import LifecycleStepStatus
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.storage.lifecycle_files import read_log, read_status


@dataclass(frozen=True)
class LifecycleAnswer:
    """How far it has come. `none`: none has run here; `stopped`: it has said nothing for too long; `unknown`: `problem` says why its file tells nothing."""

    state: Literal["none", "running", "done", "failed", "stopped", "unknown"]
    app: Literal["jupyterlab", "code-editor"] | None = None
    started_at: Time | None = None
    updated_at: Time | None = None
    steps: tuple[LifecycleStepStatus, ...] = ()
    problem: HyperpodError | None = None


@dataclass(frozen=True)
class LifecycleLog:
    """The end of its log; with `cut` there is more before it in the file."""

    path: str
    text: str
    cut: bool


async def show_lifecycle(call: Call) -> LifecycleAnswer:  # noqa: ARG001 - every endpoint is given its call
    """How far the lifecycle configuration of this space has come."""
    try:
        status = await asyncio.to_thread(read_status)
    except StorageError as error:
        return LifecycleAnswer("unknown", problem=error)
    if status is None:
        return LifecycleAnswer("none")
    return LifecycleAnswer(
        status.state_at(datetime.now(UTC)),
        status.app,
        status.started.timestamp(),
        status.updated.timestamp(),
        tuple(status.steps),
    )


async def show_lifecycle_log(call: Call) -> LifecycleLog:  # noqa: ARG001 - every endpoint is given its call
    """The end of its log."""
    log_end = await asyncio.to_thread(read_log)
    return LifecycleLog(str(log_end.path), log_end.text, log_end.cut)
