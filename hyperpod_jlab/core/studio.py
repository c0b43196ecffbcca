"""Idle shutdown of Studio: how long an application may be idle before Studio stops it, with everything that runs in it.

From SageMaker's API: ``AppLifecycleManagement.IdleSettings`` in the settings of a domain, a user profile and a space. Profile or domain decide whether it
is managed; the minutes come from the space, else the profile, else the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

APPS = ("JupyterLab", "CodeEditor")
"""Applications that Studio can stop when idle, by their types in its metadata."""

MIN_IDLE_MINUTES = 60
"""Minimum minutes, by the API's model."""


@dataclass(frozen=True)
class IdleSettings:
    """The settings of a domain, profile or space; None if unset.

    Attributes:
        managed: Whether idle applications are stopped.
        minutes: Idle minutes until then.
    """

    managed: bool | None = None
    minutes: int | None = None


@dataclass(frozen=True)
class IdleShutdown:
    """The effective settings.

    Attributes:
        on: Whether idle applications are stopped.
        minutes: Idle minutes until then; None if unset.
    """

    on: bool
    minutes: int | None = None


def resolve_idle_shutdown(settings: Sequence[IdleSettings | None]) -> IdleShutdown:
    """The effective settings: from the space first, then its profile, then the domain."""
    known_settings = [item for item in settings if item is not None]
    managed = next((item.managed for item in known_settings if item.managed is not None), False)
    minutes = next((item.minutes for item in known_settings if item.minutes is not None), None)
    return IdleShutdown(managed, minutes if managed else None)


# --------------------------------------------------------------------------------------------------
# Progress of this space's lifecycle configuration: the status file that its script writes.

SILENCE_TIMEOUT = timedelta(minutes=10)
"""Maximum silence of a running script: its longest step, downloading packages, takes a minute or two."""

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
_Text = Annotated[str, Field(max_length=4000)]


class LifecycleStepStatus(BaseModel):
    """A step of the script, with its message."""

    model_config = ConfigDict(frozen=True)

    name: _Name
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    message: _Text = ""


class LifecycleStatus(BaseModel):
    """The status file (lifecycle-configs/README.md). Unknown fields come from newer versions and are ignored."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1]
    app: Literal["jupyterlab", "code-editor"]
    state: Literal["running", "done", "failed"]
    started: AwareDatetime
    updated: AwareDatetime
    steps: Annotated[tuple[LifecycleStepStatus, ...], Field(max_length=50)]

    def state_at(self, now: datetime) -> Literal["running", "done", "failed", "stopped"]:
        """Its state; ``stopped`` means that it claims to be running, but has been silent for too long."""
        if self.state == "running" and now - self.updated > SILENCE_TIMEOUT:
            return "stopped"
        return self.state

    @property
    def failed_step(self) -> LifecycleStepStatus | None:
        return next((step for step in self.steps if step.state == "failed"), None)

    @property
    def current(self) -> LifecycleStepStatus | None:
        """The step in progress."""
        return next((step for step in self.steps if step.state == "running"), None)
