"""How far the lifecycle configuration of this space has come: what its script writes into a file while it works."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

SILENT = timedelta(minutes=10)
"""How long a script that works may say nothing: its longest step, fetching packages, takes a minute or two."""

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
_Words = Annotated[str, Field(max_length=4000)]


class LifecycleStepStatus(BaseModel):
    """A step of the script, and what it has to say."""

    model_config = ConfigDict(frozen=True)

    name: _Name
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    message: _Words = ""


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
        if self.state == "running" and now - self.updated > SILENT:
            return "stopped"
        return self.state

    @property
    def trouble(self) -> LifecycleStepStatus | None:
        """The first step that failed."""
        return next((step for step in self.steps if step.state == "failed"), None)

    @property
    def current(self) -> LifecycleStepStatus | None:
        """The step that is being done."""
        return next((step for step in self.steps if step.state == "running"), None)
