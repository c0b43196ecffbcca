"""Idle shutdown of Studio: after how long without activity an application is stopped, and what runs in it with it.

From SageMaker's API: `AppLifecycleManagement.IdleSettings` of a domain's, a user profile's and a space's settings. Whether it is managed is said by
profile or domain; the minutes by the space, else the profile, else the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

APPS = ("JupyterLab", "CodeEditor")
"""Applications that Studio can stop when they are idle, by their types in its metadata."""

MIN_IDLE_MINUTES = 60
"""Minutes that Studio waits at least, by the API's model."""


@dataclass(frozen=True)
class IdleSettings:
    """What one of the three says; None where it does not.

    Attributes:
        managed: Whether idle applications are stopped.
        minutes: After how many minutes.
    """

    managed: bool | None = None
    minutes: int | None = None


@dataclass(frozen=True)
class IdleShutdown:
    """What holds.

    Attributes:
        on: Whether idle applications are stopped.
        minutes: After how many minutes; None where nobody says it.
    """

    on: bool
    minutes: int | None = None


def resolve_idle_shutdown(settings: Sequence[IdleSettings | None]) -> IdleShutdown:
    """What holds of what was said: by the space first, then by its profile, then by the domain."""
    known_settings = [item for item in settings if item is not None]
    managed = next((item.managed for item in known_settings if item.managed is not None), False)
    minutes = next((item.minutes for item in known_settings if item.minutes is not None), None)
    return IdleShutdown(managed, minutes if managed else None)


# --------------------------------------------------------------------------------------------------
# How far the lifecycle configuration of this space has come: what its script writes into a file while it works.

SILENCE_TIMEOUT = timedelta(minutes=10)
"""How long a script that works may say nothing: its longest step, fetching packages, takes a minute or two."""

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
_Text = Annotated[str, Field(max_length=4000)]


class LifecycleStepStatus(BaseModel):
    """A step of the script, and what it has to say."""

    model_config = ConfigDict(frozen=True)

    name: _Name
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    message: _Text = ""


class LifecycleStatus(BaseModel):
    """What the file says (lifecycle-configs/README.md). Members that are not known here are newer, and are left out."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1]
    app: Literal["jupyterlab", "code-editor"]
    state: Literal["running", "done", "failed"]
    started: AwareDatetime
    updated: AwareDatetime
    steps: Annotated[tuple[LifecycleStepStatus, ...], Field(max_length=50)]

    def state_at(self, now: datetime) -> Literal["running", "done", "failed", "stopped"]:
        """Its state: ``stopped`` is one that says that it works, and has said nothing for too long."""
        if self.state == "running" and now - self.updated > SILENCE_TIMEOUT:
            return "stopped"
        return self.state

    @property
    def failed_step(self) -> LifecycleStepStatus | None:
        """The first step that failed."""
        return next((step for step in self.steps if step.state == "failed"), None)

    @property
    def current(self) -> LifecycleStepStatus | None:
        """The step that is being done."""
        return next((step for step in self.steps if step.state == "running"), None)
