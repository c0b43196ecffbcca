"""Idle shutdown in the settings of domains, user profiles and spaces of Studio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.model.idle_shutdown import APPS, IdleSettings

_MANAGED = {"ENABLED": True, "DISABLED": False}


def idle_settings(settings: Mapping[str, Any] | None) -> dict[str, IdleSettings]:
    """What settings say of idle shutdown, by the application's type in Studio's metadata; those of which they say nothing are left out.

    Args:
        settings: `DefaultUserSettings`, `DefaultSpaceSettings`, `UserSettings` or `SpaceSettings`, as the API has them.
    """
    found = {}
    for app in APPS:
        of_app = (settings or {}).get(f"{app}AppSettings") or {}
        idle = (of_app.get("AppLifecycleManagement") or {}).get("IdleSettings")
        if idle:
            managed = _MANAGED.get(str(idle.get("LifecycleManagement")))
            found[app] = IdleSettings(managed, idle.get("IdleTimeoutInMinutes"))
    return found
