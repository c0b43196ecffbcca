"""Which mode a profile has, and which folder it shares: what it was given alone stays its own when the domain's mode changes. Pure."""

from __future__ import annotations

from hyperpod_jlab.admin.plan import Wanted
from hyperpod_jlab.admin.there import Holder, Mode


def mode_of(profile: Holder, wanted: Wanted) -> Mode | None:
    """The mode that a profile is to have: one that it was given alone stays its own; None: nothing of ours."""
    if wanted.mode is None:
        return None
    own = profile.own_mode if wanted.profiles is None else None
    return own or wanted.mode


def shared_path_of(profile: Holder, wanted: Wanted) -> str:
    """The shared folder of a profile: one that it was given alone stays."""
    kept = wanted.profiles is None and profile.own_mode == "shared"
    return (profile.mark if kept else None) or wanted.shared_path
