"""Idle shutdown of Studio: after how long without activity an application is stopped, and what runs in it with it.

From SageMaker's API: `AppLifecycleManagement.IdleSettings` of a domain's, a user profile's and a space's settings. Whether it is managed is said by
profile or domain; the minutes by the space, else the profile, else the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

APPS = ("JupyterLab", "CodeEditor")
"""Applications that Studio can stop when they are idle, by their types in its metadata."""

SHORTEST = 60
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


def idle_shutdown(said: Sequence[IdleSettings | None]) -> IdleShutdown:
    """What holds of what was said: by the space first, then by its profile, then by the domain."""
    told = [one for one in said if one is not None]
    managed = next((one.managed for one in told if one.managed is not None), False)
    minutes = next((one.minutes for one in told if one.minutes is not None), None)
    return IdleShutdown(managed, minutes if managed else None)
