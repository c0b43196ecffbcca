"""Requests about this space's lifecycle configuration: the progress of its script, and its log."""

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
    """Progress of the script.

    `none`: no script has run here; `stopped`: it has been silent for too long; `unknown`: `problem` says why its file is unreadable.
    """

    state: Literal["none", "running", "done", "failed", "stopped", "unknown"]
    app: Literal["jupyterlab", "code-editor"] | None = None
    started_at: Time | None = None
    updated_at: Time | None = None
    steps: tuple[LifecycleStepStatus, ...] = ()
    problem: HyperpodError | None = None


@dataclass(frozen=True)
class LifecycleLog:
    """The end of the log; `cut` means that the file has more before it."""

    path: str
    text: str
    cut: bool


async def show_lifecycle(call: Call) -> LifecycleAnswer:  # noqa: ARG001 - every endpoint is given its call
    """Get the progress of this space's lifecycle configuration."""
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
    """Get the end of its log."""
    log_end = await asyncio.to_thread(read_log)
    return LifecycleLog(str(log_end.path), log_end.text, log_end.cut)
