"""The mode that each profile is to have, and the folder that follows from it: pure."""

from __future__ import annotations

import re

from hyperpod_jlab.admin.plan import Wanted
from hyperpod_jlab.admin.there import Holder, Mode

FOLDER, LONGEST = r"^(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]+)+\Z", 200
"""What the folder that all share looks like, and how long its path may be."""


def is_folder(path: str) -> bool:
    """Whether this can be the folder that all share: it stands in tags and lists of SageMaker just as it is given, so there is one way to write it."""
    return len(path) <= LONGEST and re.fullmatch(FOLDER, path) is not None


def mode_of(profile: Holder, wanted: Wanted) -> Mode | None:
    """The mode that a profile is to have: one that it was given alone stays its own."""
    if wanted.mode is None:
        return None
    own = profile.own_mode if wanted.profiles is None else None
    return own or wanted.mode


def private_path(profile: str) -> str:
    """The folder of a user profile. A profile's name is always a good name for a folder (SageMaker's pattern for it)."""
    return f"/{profile}"


def is_of_all(profile: Holder, wanted: Wanted) -> bool:
    """Whether the folder of a profile's name is the one that all share, so that it can't be private."""
    return private_path(profile.name) == wanted.shared_path


def shared_path_of(profile: Holder, wanted: Wanted) -> str:
    """The shared folder of a profile: one that it was given alone stays."""
    kept = wanted.profiles is None and profile.own_mode == "shared"
    return (profile.mark if kept else None) or wanted.shared_path
